package plan

import (
	"fmt"
	"net/netip"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/kubernetes/v1alpha1"
)

// NeighborsPrefix begins the names of a cluster's BGP neighbors at edges.
func NeighborsPrefix(prefix string) string { return prefix + "." }

// Neighbors are what a peering has edges declare. All that an edge says of a neighbor is in each,
// so that two can be compared.
func Neighbors(prefix string, p *v1alpha1.BGPPeering) ([]api.Neighbor, error) {
	var list []api.Neighbor
	for _, n := range p.Spec.Neighbors {
		one, err := neighborOf(n)
		if err != nil {
			return nil, err
		}
		one.Name = agentName(fmt.Sprintf("%s%s.%s", NeighborsPrefix(prefix), p.Name, one.Address))
		list = append(list, one)
	}
	return list, nil
}

func neighborOf(n v1alpha1.BGPNeighbor) (api.Neighbor, error) {
	address, err := netip.ParseAddr(n.Address)
	if err != nil {
		return api.Neighbor{}, fmt.Errorf("neighbor %q is no address: write it like 2001:db8::1",
			n.Address)
	}
	var local netip.Addr
	if n.Local != "" {
		if local, err = netip.ParseAddr(n.Local); err != nil {
			return api.Neighbor{}, fmt.Errorf("local %q of neighbor %s is no address of an edge",
				n.Local, n.Address)
		}
	}
	families := make([]config.Family, len(n.Families))
	for i, f := range n.Families {
		families[i] = config.Family(f)
	}
	port, hold, multihop := int(n.Port), float64(n.HoldTimeSeconds), int(n.Multihop)
	one := api.Neighbor{Address: address, ASN: int(n.ASN), Port: &port, Local: &local,
		PasswordFile: &n.PasswordFile, Passive: &n.Passive, Families: &families,
		HoldTimeSeconds: &hold, Multihop: &multihop, BFD: &api.NeighborBFD{}}
	if b := n.BFD; b != nil {
		one.BFD = &api.NeighborBFD{IntervalMilliseconds: int(b.IntervalMilliseconds),
			Multiplier: int(b.Multiplier)}
	}
	return one, nil
}
