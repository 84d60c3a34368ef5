package datapath

import (
	"github.com/cilium/ebpf"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

// FormerFlows are connections from before another secret, or from before services had fewer
// buckets: where [FormerChains] says who had them, they find those by the former secret,
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

// FormerChains are those of a former table of the service of index, beside its own, for
// [Edge.ChangeChains]: in force from the next [Edge.SetService] on; in place of one that the
// service has, at once.
func FormerChains(index uint32, g *pool.Generation) ServiceChains {
	return ServiceChains{formerTables + index, g}
}

// ForgetFormer takes the former table of the service of index away, from the next
// [Edge.SetService] on.
func (e *Edge) ForgetFormer(index uint32) { delete(e.former, index) }
