package datapath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
)

// Running is what an instance has in the kernel, seen from outside: from any process, and while it
// goes on. It is for measuring, and for experiments that give the programs more packets than a
// network can.
type Running struct {
	*Snapshot
	out []byte
}

// OpenRunning opens what is pinned in the instance's directory. Close it.
func OpenRunning(dir string) (*Running, error) {
	s, err := TakeSnapshot(dir)
	if err != nil {
		return nil, err
	}
	return &Running{Snapshot: s, out: make([]byte, explainFrameMax)}, nil
}

// Run gives the XDP program of the interface of an index a frame, as if it had arrived there
// (BPF_PROG_TEST_RUN): on the tables and counters of packets that do arrive. What the program would
// send or deliver goes no further. It returns the frame after that, valid until the next run, and
// nil if the frame was dropped. The calling thread must be in the instance's network namespace.
func (r *Running) Run(ingress int, frame []byte) (after []byte, err error) {
	program := r.xdp[ingress]
	if program == nil {
		return nil, fmt.Errorf("run a program on a frame: interface %d has none of %s", ingress,
			r.dir)
	}
	options := ebpf.RunOptions{
		Data: frame, DataOut: r.out, Context: xdpContext{DataEnd: uint32(len(frame)),
			Ingress: uint32(ingress)},
	}
	code, err := program.Run(&options)
	switch {
	case err != nil:
		return nil, fmt.Errorf("run a program on a frame of %d bytes: %w", len(frame), err)
	case code == xdpPass, code == xdpTransmit, code == xdpRedirect:
		return options.DataOut, nil
	}
	return nil, nil
}

// Objects are kernel objects by their numbers, which are never given twice while a machine runs,
// and what its maps take.
type Objects struct {
	Programs []ebpf.ProgramID
	Maps     []ebpf.MapID // those that programs use, and the tables in them
	MapBytes uint64       // of kernel memory
}

// Objects lists what the instance's programs consist of now.
func (r *Running) Objects() (Objects, error) {
	var o Objects
	seen := map[ebpf.MapID]bool{}
	for _, p := range r.programs {
		info, err := p.Info()
		if err != nil {
			return o, fmt.Errorf("ask for a program of %s: %w", r.dir, err)
		}
		id, _ := info.ID()
		o.Programs = append(o.Programs, id)
		maps, _ := info.MapIDs()
		for _, m := range maps {
			if err := o.add(m, seen); err != nil {
				return o, fmt.Errorf("ask for a map of %s: %w", r.dir, err)
			}
		}
	}
	return o, nil
}

// add adds a map, and the maps in it. One that is gone by now is none.
func (o *Objects) add(id ebpf.MapID, seen map[ebpf.MapID]bool) error {
	if seen[id] {
		return nil
	}
	seen[id] = true
	m, err := ebpf.NewMapFromID(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return err
	}
	bytes, _ := info.Memlock()
	o.Maps, o.MapBytes = append(o.Maps, id), o.MapBytes+bytes
	if m.Type() != ebpf.ArrayOfMaps && m.Type() != ebpf.HashOfMaps {
		return nil
	}
	var key, inner uint32
	for entries := m.Iterate(); entries.Next(&key, &inner); {
		if err := o.add(ebpf.MapID(inner), seen); err != nil {
			return err
		}
	}
	return nil
}

// Left are those of the objects that are still in the kernel.
func (o Objects) Left() (left Objects) {
	for _, id := range o.Programs {
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			p.Close()
			left.Programs = append(left.Programs, id)
		} else if !errors.Is(err, os.ErrNotExist) {
			left.Programs = append(left.Programs, id)
		}
	}
	for _, id := range o.Maps {
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			m.Close()
		}
		left.Maps = append(left.Maps, id)
	}
	return left
}
