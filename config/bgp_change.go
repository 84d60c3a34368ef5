package config

// SetAnnounce changes what a host says of its services by BGP.
func SetAnnounce(n *Node, what Announce) (*Node, error) {
	switch {
	case n.BGP == nil:
		return nil, &Problem{Kind: ErrNotFound, Path: "bgp", Text: "the node speaks no BGP",
			Mend: `add "bgp:" to its node file`}
	case n.Host == nil:
		return nil, roleless(n, "host")
	}
	return n.changed(func(c *Node) error {
		c.BGP.Announce = what
		return nil
	})
}
