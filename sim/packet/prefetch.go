//go:build amd64 || arm64

package packet

import "unsafe"

// prefetch lets the processor load a cache line that is used soon.
//
//go:noescape
func prefetch(at unsafe.Pointer)
