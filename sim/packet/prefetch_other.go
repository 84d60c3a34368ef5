//go:build !amd64 && !arm64

package packet

import "unsafe"

func prefetch(unsafe.Pointer) {}

func prefetchLines(_, _, _, _, _ unsafe.Pointer) {}
