package datapath

import (
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
		On: uint32(truth(f.Known))})
}

// SetFormerChains gives the service of index a former table beside its own, or another one in place
// of that: a packet sees the one or the other. It is in force from the next [Edge.SetService] on;
// in place of one that the service has, at once. Nil takes it away from then on.
func (e *Edge) SetFormerChains(index uint32, g *pool.Generation) error {
	if g == nil {
		delete(e.former, index)
		return nil
	}
	e.former[index] = g.Buckets()
	return e.setTable(formerTables+index, g)
}
