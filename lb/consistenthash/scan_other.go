//go:build !amd64

package consistenthash

var vector = false

func (w sought) scan(first int, reach []uint16, hits *[scanSlots]int32) int {
	return w.scanPlain(first, reach, hits)
}
