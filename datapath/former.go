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
	Known  bool
	Secret flow.Secret // the former one: the same, if only tables differ
}

func (f FormerFlows) into(spec *ebpf.CollectionSpec) error {
	return spec.Variables["former"].Set(former{Secret: f.Secret,
		On: uint32(truth(f.Known))})
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
	return e.SetChains(formerTable(index), g)
}

// formerTable is where the former chains of a service are.
func formerTable(index uint32) uint32 { return servicesMax + index }

// deleteFormerChains frees the former table of a service, if it has one.
func (e *Edge) deleteFormerChains(index uint32) error {
	err := e.maps["tables"].Delete(formerTable(index))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete former chains of service %d: %w", index, err)
	}
	e.chains[formerTable(index)].close()
	delete(e.chains, formerTable(index))
	delete(e.former, index)
	return nil
}

// PinnedFormerChains is [PinnedChains] for the former table of a service.
func PinnedFormerChains(dir string, index uint32) ([]pool.Chain, error) {
	return PinnedChains(dir, formerTable(index))
}
