package e2e_test

import (
	"net/netip"
	"slices"
)

const (
	waitFlows  = 500 // more to the service whose chains are full
	mostUnsure = 100 // one flow of so many may be one whose order is unsure
)

// servicesAndChanges plans so many services and some 50 changes, and returns the service with
// table exact.
func (p *flowPlan) servicesAndChanges(count int) (exact *flowService) {
	full := p.add(flowService{maxBackends: 10, candidates: 1, depth: 3}, 4)
	exact = p.add(flowService{maxBackends: 10, table: "exact", candidates: 1, depth: 6}, 7)
	large := []*flowService{p.add(flowService{maxBackends: 64, candidates: 2, depth: 6}, 50),
		p.add(flowService{maxBackends: 300, candidates: 2, depth: 6}, 250),
		p.add(flowService{maxBackends: 1000, candidates: 2, depth: 6}, 400)}
	if count >= 10_000 {
		large = append(large,
			p.add(flowService{maxBackends: 10_000, candidates: 2, depth: 6}, 10_000))
	}
	comes := p.add(flowService{maxBackends: 10, candidates: 2, depth: 6}, 5)
	goes := p.add(flowService{maxBackends: 40, candidates: 2, depth: 6}, 5)
	comes.last().absent = true
	var others []*flowService
	for len(p.services) < count {
		s := p.add(flowKinds[len(p.services)%len(flowKinds)], 5+p.IntN(5))
		others = append(others, s)
		for i, state := range []string{"draining", "down", "maintenance"} {
			if p.IntN(20) == 0 {
				s.last().backends[4-i].state = state
			}
		}
	}
	weigh := func(weight int) func(*flowService, *flowVersion) {
		return func(_ *flowService, v *flowVersion) { v.backends[0].weight = weight }
	}
	first, many := others[:len(flowKinds)], others[len(flowKinds):][:len(others)/3]
	p.each(first, func(s *flowService) { p.put(s, 0, "draining", s.last().backends[0].weight) })
	p.apply(func(s *flowService, v *flowVersion) {
		if v.absent = false; s != comes {
			v.backends[0].weight = 7
		}
	}, append(slices.Clone(many), comes)...)
	p.each(large, func(s *flowService) { p.put(s, 3, "draining", 1) })
	p.each(first, func(s *flowService) { p.put(s, 0, "up", s.last().backends[0].weight) })
	p.each(large, func(s *flowService) {
		p.join(s)
		p.put(s, 1, "up", 3)
		p.leave(s, 4)
	})
	p.apply(weigh(2), many...)
	for backend := range 3 {
		p.put(full, backend, "draining", 1)
	}
	p.put(exact, 2, "draining", 1)
	for i, s := range first {
		if s.depth == 4 { // a second change of a bucket would have candidates wait for a place
			continue
		}
		if i%2 == 0 {
			p.join(s)
			p.put(s, 1, "up", 3)
		} else {
			p.put(s, 2, "down", 1)
			p.leave(s, 3)
		}
	}
	p.apply(func(_ *flowService, v *flowVersion) { v.absent = true }, goes)
	return exact
}

func (p *flowPlan) each(services []*flowService, change func(*flowService)) {
	for _, s := range services {
		change(s)
	}
}

// flows makes so many flows, in turn to all services, and one to each bucket of the service with
// table exact.
func (p *flowPlan) flows(count int, exact *flowService) (flows []flow) {
	tried := map[flowKey]bool{}
	unsure := 0
	add := func(s *flowService, again bool) bool {
		f := flow{service: s, client: p.client(s), port: uint16(1024 + p.IntN(64511))}
		if before := len(flows) - 1; again && before >= 0 {
			f.port = flows[before].port // of the same client, if the family is the same
			if c := flows[before].client; c.Is4() == f.client.Is4() {
				f.client = c
			}
		}
		key := flowKey{s, f.client, f.port}
		if tried[key] {
			return false
		}
		tried[key] = true
		protocol := uint32(6)
		if s.protocol == "udp" {
			protocol = 17
		}
		hash := p.oracle.hash(f.client, s.vip, f.port, s.port(), protocol)
		f.bucket = int((hash >> 32) * uint64(s.buckets) >> 32)
		if s != exact {
			sure := false
			if f.want, sure = s.chains(f.bucket); !sure {
				unsure++
				return false
			}
		}
		flows = append(flows, f)
		return true
	}
	others := slices.DeleteFunc(slices.Clone(p.services),
		func(s *flowService) bool { return s == exact })
	for i := 0; len(flows) < count; i++ {
		s := others[i%len(others)]
		if i < waitFlows {
			s = others[0]
		}
		add(s, i%7 == 0)
	}
	owned := map[int]bool{}
	for len(owned) < exact.buckets {
		if !add(exact, false) {
			continue
		}
		if last := flows[len(flows)-1]; owned[last.bucket] {
			flows = flows[:len(flows)-1]
		} else {
			owned[last.bucket] = true
		}
	}
	if unsure > count/mostUnsure {
		panic("the order of too many backends is unsure")
	}
	return flows
}

type flowKey struct {
	service *flowService
	client  netip.Addr
	port    uint16
}

// client is one of 65,536 of the service's family.
func (p *flowPlan) client(s *flowService) netip.Addr {
	last := [2]byte{byte(p.IntN(256)), byte(p.IntN(256))}
	if s.vip.Is4() {
		return netip.AddrFrom4([4]byte{11, 1, last[0], last[1]})
	}
	a := netip.MustParseAddr("2001:db8:c:1::").As16()
	copy(a[14:], last[:])
	return netip.AddrFrom16(a)
}
