package config

// hostCheck checks a host's check of its own service, which goes to the VIP on this machine.
func (c *checker) hostCheck(service string, s HostService) {
	k := s.Check
	if k == nil {
		return
	}
	where := join(service, "check")
	c.checkPort(where, s.Name, s.Endpoint, k)
	c.checkSettings(where, k)
	if c.node.BGP == nil {
		c.invalid(where, "the check has no effect: the node tells nobody what it finds",
			`add "bgp:", or delete the check`)
	}
	for _, f := range []struct {
		key   string
		given bool
	}{{"function", k.Function != 0}, {"source", k.Source.IsValid()}, {"passive", k.Passive != nil},
		{"onFail", k.OnFail == FailDown}, {"reuse", k.Reuse}} {
		if f.given {
			c.invalid(join(where, f.key), f.key+" does not belong to a host's check of itself",
				"delete it")
		}
	}
}
