package config

import (
	"net/netip"

	"sextant/flow"
)

// The functions of this file are the schema: one table of keys per object.

func readNode(v value, n *Node) {
	v.d.places[""] = PlaceOf(first(v.node))
	v.mapping(
		field{"node", intoText(&n.Name), `"node: NAME"`},
		field{"domain", func(v value) { readDomain(v, &n.Domain) }, `"domain:" with block and infrastructure`},
		field{"secret", func(v value) { readSecret(v, n) }, ""},
		field{"secretFile", intoText(&n.SecretFile), ""},
		field{"state", intoText(&n.State), ""},
		field{"api", func(v value) { readAPI(v, &n.API) }, ""},
		field{"edge", func(v value) { n.Edge = newEdge(); readEdge(v, n.Edge) }, ""},
		field{"host", func(v value) { n.Host = &Host{}; readHost(v, n.Host) }, ""},
		field{"headend", func(v value) { n.Headend = newHeadend(); readHeadend(v, n.Headend) }, ""},
		field{"merge", func(v value) { n.Merge = &Merge{}; readMerge(v, n.Merge) }, ""},
		field{"strays", func(v value) { n.Strays = &Strays{}; readStrays(v, n.Strays) }, ""},
		field{"protect", func(v value) { n.Protect = newProtect(); readProtect(v, n.Protect) }, ""},
		field{"bgp", func(v value) { n.BGP = newBGP(); readBGP(v, n.BGP) }, ""},
		field{"routing", func(v value) { n.Routing = &Routing{}; readRouting(v, n.Routing) }, ""},
	)
	if _, both := v.d.places["secretFile"]; both && v.d.secret != "" {
		v.d.add(invalid("both secret and secretFile are given", "delete one of the two"), v.d.place("secretFile"))
	}
	if _, given := v.d.places["domain.overhead"]; !given {
		n.Domain.Overhead = overheadOf(n.Edge)
	}
	if _, given := v.d.places["bgp.onStop"]; !given && n.BGP != nil {
		n.BGP.OnStop = onStopOf(n)
	}
	n.Routing.setDatapaths(n, v.d.places)
}

func readDomain(v value, d *Domain) {
	v.mapping(
		field{"block", into(&d.Block, parseBlock), `"block: " and the SID block, like fcbb:bb00::/32`},
		field{"locators", intoList(&d.Locators, readPrefix), ""},
		field{"infrastructure", intoList(&d.Infrastructure, readPrefix),
			`"infrastructure: " and the list of prefixes from which SRv6 is accepted`},
		field{"mtu", intoNumber(&d.MTU), ""},
		field{"overhead", intoNumber(&d.Overhead), ""},
	)
}

func readPrefix(v value) (p netip.Prefix) {
	into(&p, parsePrefix)(v)
	return p
}

// readSecret remembers the text, so that it is in no error.
func readSecret(v value, n *Node) {
	if text, ok := v.text(); ok {
		v.d.secret = text
		into(&n.Secret, flow.ParseSecret)(v)
	}
}

func readAPI(v value, a *API) {
	v.mapping(
		field{"socket", intoText(&a.Socket), ""},
		field{"metrics", into(&a.Metrics, ParseListener), ""},
	)
}

func readEdge(v value, e *Edge) {
	v.mapping(
		field{"interfaces", intoList(&e.Interfaces, readEdgeInterface), `"interfaces:" and a list of names and sides`},
		field{"source", into(&e.Source, ParseAddress),
			`"source: " and an address of this machine that lies inside infrastructure`},
		field{"encapsulation", intoText(&e.Encapsulation), ""},
		field{"hmac", func(v value) { key := readHMACKey(v); e.HMAC = &key }, ""},
		field{"hopLimit", intoNumber(&e.HopLimit), ""},
		field{"buckets", intoNumber(&e.Buckets), ""},
		field{"peers", intoList(&e.Peers, readListener), ""},
		field{"etcd", func(v value) { e.Etcd = &Etcd{}; readEtcd(v, e.Etcd) }, ""},
		field{"flowCache", func(v value) { readFlowCache(v, &e.FlowCache) }, ""},
		field{"shadow", func(v value) { readShadow(v, &e.Shadow) }, ""},
		field{"services", intoList(&e.Services, readService), ""},
	)
}

func readEdgeInterface(v value) EdgeInterface {
	i := newEdgeInterface()
	v.mapping(
		field{"name", intoText(&i.Name), `"name: " and the name of a network interface`},
		field{"side", intoText(&i.Side), ""},
		field{"mode", intoText(&i.Mode), ""},
	)
	return i
}

func readService(v value) Service {
	s := newService("")
	fields := append(endpointFields(&s.Name, &s.Endpoint), continuityFields(&s.Continuity)...)
	v.mapping(append(fields,
		field{"check", func(v value) { s.Check = newCheck(); readCheck(v, s.Check) }, ""},
		field{"quic", func(v value) { readQUIC(v, &s.QUIC) }, ""},
		field{"newConnections", func(v value) { readNewConnections(v, &s.NewConnections) }, ""},
		field{"backends", intoList(&s.Backends, readBackend), ""},
		field{"learned", intoList(&s.Learned, readLearned), ""},
	)...)
	return s
}

func endpointFields(name *string, e *Endpoint) []field {
	return []field{
		{"name", intoText(name), `"name: " and a name for the service`},
		{"vip", into(&e.VIP, ParseAddress), `"vip: " and the address that clients connect to`},
		{"protocol", intoText(&e.Protocol), ""},
		{"port", into(&e.Port, ParsePort), `"port: " and a port, or any`},
	}
}

func readBackend(v value) Backend {
	b := newBackend("")
	v.mapping(
		field{"name", intoText(&b.Name), `"name: " and a name for the backend`},
		field{"sid", into(&b.SID, ParseSID), `"sid: " and the SID at which the backend is offered connections`},
		field{"weight", intoNumber(&b.Weight), ""},
		field{"state", intoText(&b.State), ""},
		field{"agent", into(&b.Agent, ParseListener), ""},
	)
	return b
}

func readHost(v value, h *Host) {
	v.mapping(
		field{"interfaces", intoList(&h.Interfaces, readHostInterface), `"interfaces:" and a list of names`},
		field{"cgroup", intoText(&h.Cgroup), ""},
		field{"source", into(&h.Source, ParseAddress), ""},
		field{"learners", intoList(&h.Learners, readPrefix), ""},
		field{"hmac", func(v value) { h.HMAC = &HMAC{}; readHMAC(v, h.HMAC) }, ""},
		field{"sids", intoList(&h.SIDs, readSID), `"sids:" and a list of prefixes with behavior`},
		field{"services", intoList(&h.Services, readHostService), ""},
	)
}

func readHostInterface(v value) HostInterface {
	i := newHostInterface()
	v.mapping(
		field{"name", intoText(&i.Name), `"name: " and the name of a network interface`},
		field{"mode", intoText(&i.Mode), ""},
	)
	return i
}

func readSID(v value) (s SID) {
	v.mapping(
		field{"prefix", into(&s.Prefix, parsePrefix), `"prefix: " and an IPv6 prefix like "fcbb:bb00:1::/48"`},
		field{"behavior", into(&s.Behavior, parseBehavior), `"behavior: " and ` + alternatives(hostBehaviors)},
		field{"backup", into(&s.Backup, ParseSID), ""},
	)
	return s
}

func readHostService(v value) HostService {
	s := newHostService("")
	v.mapping(append(endpointFields(&s.Name, &s.Endpoint),
		field{"accept", func(v value) { readAccept(v, &s.Accept) }, ""},
		field{"load", into(&s.Load, ParseLoad), ""},
		field{"quic", into(&s.QUIC, parseBool), ""},
		field{"check", func(v value) { s.Check = newHostCheck(); readCheck(v, s.Check) }, ""},
	)...)
	return s
}

func readAccept(v value, a *Accept) {
	var c AcceptChange
	v.mapping(
		field{"policy", optional(&c.Policy, intoText[Policy]), `"policy: " and ` + alternatives(policies)},
		field{"threshold", optional(&c.Threshold, intoNumber), ""},
		field{"workers", optional(&c.Workers, intoNumber), ""},
		field{"window", optional(&c.Window, intoNumber), ""},
		field{"low", optional(&c.LowPermille, intoPermille), ""},
		field{"high", optional(&c.HighPermille, intoPermille), ""},
		field{"initial", optional(&c.Initial, intoNumber), ""},
		field{"cores", optional(&c.Cores, intoNumber), ""},
	)
	accept, problems := c.on(newAccept(Average))
	*a = accept
	for _, p := range problems {
		p.Path = join(v.path, p.Path)
		for i, path := range p.about {
			p.about[i] = join(v.path, path)
		}
		v.d.judge(p)
		v.d.broken = append(v.d.broken, p.Path)
	}
}

func intoPermille(target *int) func(value) { return into(target, ParsePermille) }

// optional makes a reader that notes in a pointer that the key was there.
func optional[T any](target **T, reader func(*T) func(value)) func(value) {
	return func(v value) {
		*target = new(T)
		reader(*target)(v)
	}
}
