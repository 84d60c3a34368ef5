package config

import (
	"net/netip"
	"slices"
	"time"
)

// A DeclaredNeighbor is all that other software, which keeps neighbors of a node, says of one. What
// is nil has its default.
type DeclaredNeighbor struct {
	Name         string
	Address      netip.Addr
	ASN          int
	Port         *int
	Local        *netip.Addr
	PasswordFile *string
	Passive      *bool
	Families     *[]Family
	HoldTime     *time.Duration
	Multihop     *int
	BFD          *BFD
}

// DeclareNeighbors sets BGP neighbors, adds those that are not there, and removes others, all in
// one change. They are known by their names; one without a name is left alone, and one to remove
// that is not there is no error.
func DeclareNeighbors(n *Node, set []DeclaredNeighbor, remove []string) (*Node, error) {
	if n.BGP == nil {
		return nil, speechless()
	}
	return n.changed(func(c *Node) error {
		c.BGP.Neighbors = slices.DeleteFunc(c.BGP.Neighbors, func(b Neighbor) bool {
			return b.Name != "" && slices.Contains(remove, b.Name)
		})
		for _, d := range set {
			if err := needs(d.Name != "", "name of neighbor "+d.Address.String()); err != nil {
				return err
			}
			next := fresh[Neighbor]()
			next.Name, next.Address, next.ASN = d.Name, d.Address, d.ASN
			setAll(&next, d)
			next.settle(nil)
			i := slices.IndexFunc(c.BGP.Neighbors,
				func(b Neighbor) bool { return b.Name == d.Name })
			if i < 0 {
				c.BGP.Neighbors = append(c.BGP.Neighbors, next)
			} else {
				c.BGP.Neighbors[i] = next
			}
		}
		return nil
	})
}

// Declaration is what DeclareNeighbors is to be told so that it leaves a neighbor as it is.
func (n Neighbor) Declaration() DeclaredNeighbor {
	return DeclaredNeighbor{Name: n.Name, Address: n.Address, ASN: n.ASN, Port: &n.Port,
		Local: &n.Local, PasswordFile: &n.PasswordFile, Passive: &n.Passive, Families: &n.Families,
		HoldTime: &n.HoldTime, Multihop: &n.Multihop, BFD: &n.BFD}
}

func speechless() *Problem {
	return &Problem{Kind: ErrNotFound, Path: "bgp", Text: "the node speaks no BGP",
		Mend: `add "bgp: {asn: 64512, routerID: 192.0.2.1}" with its own numbers to its node ` +
			"file, and restart the agent"}
}

// SetAnnounce changes what a host says of its services by BGP.
func SetAnnounce(n *Node, what Announce) (*Node, error) {
	switch {
	case n.BGP == nil:
		return nil, speechless()
	case n.Host == nil:
		return nil, roleless(n, "host")
	}
	return n.changed(func(c *Node) error {
		c.BGP.Announce = what
		return nil
	})
}
