package controller

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/cflb"
	"sextant/packet/lists"
	"sextant/te/elephant"
	"sextant/te/reroute"
	"sextant/te/topology"
)

// CFLB is a network whose sources choose among equal-cost next hops, and the paths that its long
// flows get: controllable per-flow load balancing.
type CFLB struct {
	KeyFile string           `yaml:"keyFile"` // with the network's key
	IPv4    *config.Selector `yaml:"ipv4"`
	IPv6    *config.Selector `yaml:"ipv6"`
	// HopLimit of packets that come to the first router.
	HopLimit int `yaml:"hopLimit"`
	// Best says which path is best: flows, weight or coloring.
	Best  string  `yaml:"best"`
	Hosts []Hosts `yaml:"hosts"`
}

// Hosts are those on links of a router.
type Hosts struct {
	Prefix netip.Prefix `yaml:"prefix"`
	Router string       `yaml:"router"`
}

const defaultHopLimit = 64

func (c *CFLB) check() error {
	if c == nil {
		return nil
	}
	if c.HopLimit == 0 {
		c.HopLimit = defaultHopLimit
	}
	if c.Best == "" {
		c.Best = elephant.Flows.String()
	}
	if c.HopLimit < 1 || c.HopLimit > 255 {
		return fmt.Errorf("cflb.hopLimit %d: write 1 to 255", c.HopLimit)
	}
	if _, err := elephant.ParseObjective(c.Best); err != nil {
		return fmt.Errorf("cflb.best: %w", err)
	}
	if c.IPv4 == nil && c.IPv6 == nil {
		return fmt.Errorf("cflb: no family is controlled; add \"ipv4: {fields: source-port}\" or " +
			"\"ipv6: {fields: flow-label}\", as the routers have it")
	}
	for name, s := range map[string]*config.Selector{"cflb.ipv4": c.IPv4, "cflb.ipv6": c.IPv6} {
		if s == nil {
			continue
		}
		if faults := s.Faults(name); len(faults) > 0 {
			return fmt.Errorf("%s: %w", faults[0].Path, faults[0])
		}
	}
	if c.KeyFile == "" {
		return fmt.Errorf("cflb.keyFile: name the file with the network's key")
	}
	if len(c.Hosts) == 0 {
		return fmt.Errorf("cflb.hosts: there are none; say at which routers hosts are, as in " +
			"\"hosts: [{prefix: 10.0.1.0/24, router: leaf1}]\"")
	}
	for i, h := range c.Hosts {
		if !h.Prefix.IsValid() || h.Router == "" {
			return fmt.Errorf("cflb.hosts[%d]: prefix %s at router %q: write a prefix, and the "+
				"name of a router of the topology", i, h.Prefix, h.Router)
		}
	}
	return nil
}

// fabric is a network with controllable load balancing, as the controller knows it.
type fabric struct {
	*names
	config   *CFLB
	codecs   map[bool]*cflb.Codec // by whether of IPv6
	hosts    []hostsAt            // the longest prefixes first
	gateways map[topology.Edge][]netip.Addr
	devices  map[topology.Edge]string
	numbers  map[topology.Node]uint32 // of routers, by which they hash
	paths    *elephant.Scheduler
	best     elephant.Objective
}

type hostsAt struct {
	prefix netip.Prefix
	router topology.Node
}

// newFabric prepares a network; nil if the file has none.
func newFabric(c *Config, n *names, weight func(topology.Edge) float64, herd float64) (*fabric,
	error) {
	if c.CFLB == nil {
		return nil, nil
	}
	f := &fabric{names: n, config: c.CFLB, codecs: map[bool]*cflb.Codec{},
		gateways: map[topology.Edge][]netip.Addr{}, devices: map[topology.Edge]string{},
		numbers: map[topology.Node]uint32{}}
	key, err := api.ReadCFLBKey("cflb", c.CFLB.KeyFile)
	if err != nil {
		return nil, err
	}
	network := config.CFLB{Key: key, IPv4: c.CFLB.IPv4, IPv6: c.CFLB.IPv6}
	for _, of6 := range []bool{false, true} {
		if f.codecs[of6], err = network.Codec(of6); err != nil {
			return nil, fmt.Errorf("cflb: %w", err)
		}
	}
	if err := f.place(c); err != nil {
		return nil, err
	}
	metric, err := reroute.ParseMetric(c.Policy.Metric)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	all := n.graph.All()
	f.paths = elephant.New(all, f.leaves(), elephant.Settings{Cost: metric.Cost(all),
		Weight: weight, Herd: herd})
	f.best, _ = elephant.ParseObjective(c.CFLB.Best)
	if f.best == elephant.Coloring && f.paths.Colors() != nil {
		return nil, fmt.Errorf("cflb.best: %w; write flows or weight", f.paths.Colors())
	}
	return f, nil
}

// place notes where hosts are, and what the file says of links and routers.
func (f *fabric) place(c *Config) error {
	for i, h := range c.CFLB.Hosts {
		v, ok := f.graph.Lookup(h.Router)
		if !ok {
			return fmt.Errorf("cflb.hosts[%d]: %s has no router %q; write the name of one", i,
				f.graph.Name(), h.Router)
		}
		f.hosts = append(f.hosts, hostsAt{h.Prefix.Masked(), v})
	}
	slices.SortStableFunc(f.hosts, func(a, b hostsAt) int {
		return cmp.Compare(b.prefix.Bits(), a.prefix.Bits())
	})
	for i, r := range c.Routers {
		if r.CFLB == 0 {
			continue
		}
		v, ok := f.graph.Lookup(r.Name)
		if !ok {
			return fmt.Errorf("routers[%d]: %s has no router %q", i, f.graph.Name(), r.Name)
		}
		f.numbers[v] = r.CFLB
	}
	return eachLink(f.graph, c, func(e topology.Edge, l Queue) {
		f.gateways[e], f.devices[e] = l.Gateways, l.Device
	})
}

// leaves are the routers with hosts, each once.
func (f *fabric) leaves() []topology.Node {
	list := lists.Map(f.hosts, func(h hostsAt) topology.Node { return h.router })
	slices.Sort(list)
	return slices.Compact(list)
}

func conflict(format string, args ...any) error {
	return &api.Error{Code: api.Conflict, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return &api.Error{Code: api.Invalid, Message: fmt.Sprintf(format, args...)}
}

func (f *fabric) tooFar() error {
	return invalid("packets of hop limit %d do not go as far", f.config.HopLimit)
}

// routerOf is where a host is.
func (f *fabric) routerOf(host netip.Addr) (topology.Node, error) {
	for _, h := range f.hosts {
		if h.prefix.Contains(host) {
			return h.router, nil
		}
	}
	return 0, &api.Error{Code: api.NotFound, Message: fmt.Sprintf("no router has the host %s; "+
		"add its prefix to cflb.hosts of the controller's file", host)}
}

func (f *fabric) ends(flow api.Flow) (ends elephant.Ends, err error) {
	if ends.From, err = f.routerOf(flow.Source.Addr()); err == nil {
		ends.To, err = f.routerOf(flow.Destination.Addr())
	}
	return ends, err
}

// gateway is the address of a next hop; invalid: the file does not say.
func (f *fabric) gateway(e topology.Edge, of6 bool) netip.Addr {
	for _, a := range f.gateways[e] {
		if a.Is6() == of6 {
			return a
		}
	}
	return netip.Addr{}
}

// nextHops are the equal-cost next hops of a router by index, in the order of equalcost.Table.
func (f *fabric) nextHops(v, to topology.Node, of6 bool) ([]topology.Edge, error) {
	links := f.paths.NextHops(v, to)
	if len(links) < 2 {
		return links, nil
	}
	for _, e := range links {
		if !f.gateway(e, of6).IsValid() {
			return nil, conflict("router %s has several next hops, and their order is not known; "+
				"give each its address in links of the controller's file: {from: %s, to: %s, "+
				"gateways: [ADDRESS]}", f.name(v), f.name(v), f.name(f.graph.To(e)))
		}
	}
	slices.SortStableFunc(links, func(a, b topology.Edge) int {
		return cmp.Or(f.gateway(a, of6).Compare(f.gateway(b, of6)),
			cmp.Compare(f.devices[a], f.devices[b]))
	})
	return links, nil
}

func (f *fabric) name(v topology.Node) string { return f.graph.Node(v).Name }

// choices are what routers on a path choose, those that have several next hops.
func (f *fabric) choices(path []topology.Edge, to topology.Node, of6 bool) ([]Choice, error) {
	list := []Choice{}
	for i, e := range path {
		if i >= f.config.HopLimit {
			return nil, f.tooFar()
		}
		v := f.graph.From(e)
		links, err := f.nextHops(v, to, of6)
		if err != nil {
			return nil, err
		}
		index := slices.Index(links, e)
		if index < 0 {
			return nil, invalid("no shortest path to %s leads from %s to %s", f.name(to), f.name(v),
				f.name(f.graph.To(e)))
		}
		if len(links) > 1 {
			list = append(list, Choice{Router: f.name(v), HopLimit: uint8(f.config.HopLimit - i),
				Index: index, NextHops: len(links), How: cflb.Controlled.String()})
		}
	}
	return list, nil
}

func hopsOf(choices []Choice) (hops []cflb.Hop) {
	for _, c := range choices {
		hops = append(hops, cflb.Hop{HopLimit: c.HopLimit, Index: c.Index})
	}
	return hops
}

// portsLeast is the first port that a source takes for a path.
const portsLeast = 1024

func packetOf(flow api.Flow, label *uint32) (cflb.Packet, error) {
	t, err := tupleOf(flow)
	if err != nil {
		return cflb.Packet{}, err
	}
	if t.Src.Is4() != t.Dst.Is4() {
		return cflb.Packet{}, invalid("%s and %s are of two IP versions", t.Src, t.Dst)
	}
	p := cflb.Packet{Src: t.Src, Dst: t.Dst, Protocol: t.Protocol, HasPorts: true,
		SrcPort: t.SrcPort, DstPort: t.DstPort}
	if label != nil {
		p.FlowLabel = *label
	}
	return p, nil
}

// steer finds the port or flow label with which a flow takes a path. What the flow has already is
// kept if it does.
func (f *fabric) steer(flow api.Flow, label *uint32, path []topology.Edge, ends elephant.Ends,
	first uint32, usable func(api.Flow) bool) (s Steered, err error) {
	p, err := packetOf(flow, label)
	if err != nil {
		return s, err
	}
	codec := f.codecs[p.Src.Is6()]
	s = Steered{Flow: flow, FlowLabel: label, Path: f.routers(path)}
	if len(path) == 0 {
		s.Path = []string{f.name(ends.From)}
	}
	if s.Choices, err = f.choices(path, ends.To, p.Src.Is6()); err != nil {
		return s, err
	}
	fields := codec.Parts().Fields
	if fields == cflb.NoFields {
		return s, conflict("packets of %s carry no paths; add cflb.ipv4 or cflb.ipv6 to the "+
			"controller's file, as the routers have it", flow.Source.Addr())
	}
	if flow.Source.Port() == 0 && fields != cflb.FlowLabel {
		p.SrcPort = uint16(portsLeast + first%(1<<16-portsLeast))
	} else if codec.Takes(p, hopsOf(s.Choices)) {
		return s, nil
	}
	found, ok := codec.Find(p, hopsOf(s.Choices), first, func(p cflb.Packet) bool {
		flow := flow
		flow.Source = netip.AddrPortFrom(p.Src, p.SrcPort)
		return fields.HasLabel() || p.SrcPort >= portsLeast && usable(flow)
	})
	if !ok {
		return s, conflict("no %s of %s takes the path %v; it has too many choices for the "+
			"selector, or others have all that do", fields, flow.Source.Addr(), s.Path)
	}
	s.Flow.Source = netip.AddrPortFrom(found.Src, found.SrcPort)
	if fields.HasLabel() {
		s.FlowLabel = &found.FlowLabel
	}
	return s, nil
}

// follow is the path that routers let a flow take.
func (f *fabric) follow(flow api.Flow, label *uint32) (s Steered, path []topology.Edge,
	err error) {
	p, err := packetOf(flow, label)
	if err != nil {
		return s, nil, err
	}
	ends, err := f.ends(flow)
	if err != nil {
		return s, nil, err
	}
	codec := f.codecs[p.Src.Is6()]
	s = Steered{Flow: flow, FlowLabel: label, Choices: []Choice{}}
	v := ends.From
	for ; v != ends.To; v = f.graph.To(path[len(path)-1]) {
		links, err := f.nextHops(v, ends.To, p.Src.Is6())
		switch {
		case err != nil:
			return s, nil, err
		case len(links) == 0:
			return s, nil, &api.Error{Code: api.NotFound, Message: elephant.ErrNoPath.Error()}
		case len(path) >= f.config.HopLimit:
			return s, nil, f.tooFar()
		case len(links) == 1:
			path = append(path, links[0])
			continue
		}
		p.HopLimit = uint8(f.config.HopLimit - len(path))
		c := Choice{Router: f.name(v), HopLimit: p.HopLimit, NextHops: len(links)}
		if c.Index, c.How, err = f.choose(codec, p, v, len(links)); err != nil {
			return s, nil, err
		}
		s.Choices = append(s.Choices, c)
		if c.Index < 0 {
			s.Problem = fmt.Sprintf("router %s hashes the flow (%s), and its number is not known; "+
				"give it in the controller's file, routers: [{name: %s, cflb: NUMBER}]", c.Router,
				c.How, c.Router)
			break
		}
		path = append(path, links[c.Index])
	}
	if s.Path = f.routers(path); len(path) == 0 {
		s.Path = []string{f.name(v)}
	}
	return s, path, nil
}

// choose is the next hop that a router takes for a packet; -1: it hashes by what is not known.
func (f *fabric) choose(codec *cflb.Codec, p cflb.Packet, v topology.Node, count int) (int, string,
	error) {
	group, err := codec.NewGroup(slices.Repeat([]uint32{1}, count))
	if err != nil {
		return 0, "", conflict("router %s: %v", f.name(v), err)
	}
	index, how := codec.NextHop(p, f.numbers[v], group)
	if how != cflb.Controlled && f.numbers[v] == 0 {
		index = -1
	}
	return index, how.String(), nil
}

// controlled says whether routers hash a flow nowhere.
func (s Steered) controlled() bool {
	return !slices.ContainsFunc(s.Choices, func(c Choice) bool {
		return c.How != cflb.Controlled.String()
	})
}
