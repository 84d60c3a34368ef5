package wire

import "testing"

func FuzzFrame(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) { ParseFrame(b) })
}
