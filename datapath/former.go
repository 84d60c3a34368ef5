package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

// FormerFlows are connections from before another secret, or from before services had fewer
// buckets: where [Edge.SetFormerChains] says who had them, they find those by the former secret,
// too. The zero value: nothing former is known, which packets are processed fastest with.
type FormerFlows struct {
	Known bool
	// the former ones: the same, if only tables differ
	Secret   flow.Secret
	FlowHash flow.Function
}

func (f FormerFlows) into(spec *ebpf.CollectionSpec) error {
	return spec.Variables["former"].Set(former{Secret: secretOf(f.Secret, f.FlowHash),
		On: uint32(truth(f.Known)), FirstTable: spec.Maps["tables"].MaxEntries / 2})
}

// SetFormerChains gives the service of index a former table beside its own, or another one in place
// of that: a packet sees the one or the other. Nil takes it away. It is in force from the next
// [Edge.SetService] on; as long as the number of buckets stays the same, at once.
func (e *Edge) SetFormerChains(index uint32, g *pool.Generation) error {
	if g == nil {
		delete(e.former, index)
		return nil
	}
	e.former[index] = g.Buckets()
	return e.SetChains(formerTable(e.maps["tables"], index), g)
}

// formerTable is where the former chains of a service are in the map of tables: in its second half.
func formerTable(tables *ebpf.Map, index uint32) uint32 { return tables.MaxEntries()/2 + index }

// deleteFormerChains frees the former table of a service, if it has one.
func (e *Edge) deleteFormerChains(index uint32) error {
	table := formerTable(e.maps["tables"], index)
	err := e.await(func() error { return e.maps["tables"].Delete(table) })
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete former chains of service %d: %w", index, err)
	}
	e.chains[table].close()
	delete(e.chains, table)
	delete(e.former, index)
	return nil
}
