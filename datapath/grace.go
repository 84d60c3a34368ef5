package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// awaitPackets waits until no program runs any more that ran when it was called, some 10 ms, as the
// kernel does at each change of an array of maps.
func awaitPackets() error {
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4,
		MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return fmt.Errorf("wait for packets under way: %w", err)
	}
	defer outer.Close()
	table, err := ebpf.NewMap(inner)
	if err != nil {
		return fmt.Errorf("wait for packets under way: %w", err)
	}
	defer table.Close()
	if err := outer.Put(uint32(0), table); err != nil {
		return fmt.Errorf("wait for packets under way: %w", err)
	}
	return nil
}
