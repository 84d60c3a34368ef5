package datapath

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// CheckPaths is what routes of health checks encapsulate with: the program, and which SID a mark
// means. The kernel holds both as long as a route names the program.
type CheckPaths struct {
	program *ebpf.Program
	ways    *ebpf.Map
}

type checkWay struct{ Source, SID [16]byte }

// NewCheckPaths loads the program, for so many marks at most.
func NewCheckPaths(marks int) (*CheckPaths, error) {
	spec, err := loadCheckPath()
	if err != nil {
		return nil, err
	}
	spec.Maps[checkPathMapCheckWays].MaxEntries = uint32(marks)
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, explainLoad(err)
	}
	defer loaded.Close()
	return &CheckPaths{loaded.DetachProgram(checkPathProgCheckPath),
		loaded.DetachMap(checkPathMapCheckWays)}, nil
}

// Program is for routes, and is valid until Close.
func (c *CheckPaths) Program() (fd int) { return c.program.FD() }

// Set leads packets of a mark to a SID, from a source.
func (c *CheckPaths) Set(mark uint32, source, sid netip.Addr) error {
	if err := c.ways.Put(mark, checkWay{source.As16(), sid.As16()}); err != nil {
		return fmt.Errorf("write the way of mark %#x: %w", mark, err)
	}
	return nil
}

// Unset lets no packets of a mark pass.
func (c *CheckPaths) Unset(mark uint32) error {
	if err := c.ways.Delete(mark); err != nil {
		return fmt.Errorf("remove the way of mark %#x: %w", mark, err)
	}
	return nil
}

// Close leaves what routes name to the kernel.
func (c *CheckPaths) Close() {
	c.program.Close()
	c.ways.Close()
}
