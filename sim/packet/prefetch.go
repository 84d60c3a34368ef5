//go:build amd64 || arm64

package packet

import "unsafe"

// prefetch lets the processor load a cache line that is used soon.
//
//go:noescape
func prefetch(at unsafe.Pointer)

// prefetchLines does that with five of them: a call costs more than what it does.
//
//go:noescape
func prefetchLines(a, b, c, d, e unsafe.Pointer)
