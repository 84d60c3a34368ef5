package serverload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// memory is a file of 16 bytes that an application maps and writes: memoryMagic, then the number of
// what keeps it busy, 64 bits in the machine's order, written in one store. The file lies in
// /dev/shm or another place in memory.
type memory struct{ path string }

// memoryMagic says what the file is, and of which version.
const memoryMagic = "SXTLOAD1"

// busy reads the number. The file may be replaced at any time: it is opened anew.
func (m memory) busy(context.Context) (int, error) {
	f, err := os.Open(m.path)
	if err != nil {
		return 0, fmt.Errorf("read the load from memory: %w; does the application run?", err)
	}
	defer f.Close()
	var content [len(memoryMagic) + 8]byte
	if _, err := io.ReadFull(f, content[:]); err != nil && !errors.Is(err, io.EOF) &&
		!errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("read the load from memory: %w", err)
	}
	n, err := parseMemory(content[:])
	if err != nil {
		return 0, fmt.Errorf("read the load from %s: %w", m.path, err)
	}
	return n, nil
}

func parseMemory(content []byte) (int, error) {
	if len(content) < len(memoryMagic)+8 || string(content[:len(memoryMagic)]) != memoryMagic {
		return 0, fmt.Errorf("it does not begin with %s and a number of 8 bytes; write it as "+
			"docs/howto/load.md says", memoryMagic)
	}
	n := binary.NativeEndian.Uint64(content[len(memoryMagic):])
	if n > math.MaxInt32 {
		return 0, fmt.Errorf("the number %d is more than can be busy; it is 64 bits in the order "+
			"of this machine", n)
	}
	return int(n), nil
}
