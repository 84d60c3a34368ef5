package serverload

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"sextant/lb/acceptance"
)

// Gauge is a server's end of the file that "load: memory:FILE" names: how busy it is, or that it
// wants no more connections. Writing it is one store, so that a server may do so with each
// connection or request. Its methods may be called by several goroutines.
type Gauge struct {
	memory []byte
	number *atomic.Uint64
}

// OpenGauge maps the file, which is made if it is not there, and says 0.
func OpenGauge(path string) (*Gauge, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the file for the load: %w", err)
	}
	defer f.Close()
	size := len(memoryMagic) + 8
	if err := f.Truncate(int64(size)); err != nil {
		return nil, fmt.Errorf("make room for the load: %w", err)
	}
	g := &Gauge{}
	if g.memory, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map %s: %w; it has to lie in a file system that maps files, such "+
			"as /dev/shm", path, err)
	}
	g.number = (*atomic.Uint64)(unsafe.Pointer(&g.memory[len(memoryMagic)]))
	g.number.Store(0)
	copy(g.memory, memoryMagic)
	return g, nil
}

// Set says how busy the server is, from 0 on. With accept.Full or more, others get all new
// connections that they may take.
func (g *Gauge) Set(busy int) { g.number.Store(uint64(min(max(busy, 0), acceptance.Full))) }

// Close ends the mapping. What was said last stays.
func (g *Gauge) Close() error { return syscall.Munmap(g.memory) }
