package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/config"
)

// flowService is a service of the edge, with all that becomes of it.
type flowService struct {
	name              string
	vip               netip.Addr
	protocol          string
	policy, table     string
	maxBackends       int
	candidates, depth int // of an offer; else 1
	seed              uint64
	buckets           int
	versions          []flowVersion // the first is that of change 0, the start
}

// flowVersion is a service from a change on.
type flowVersion struct {
	change   int
	absent   bool
	backends []flowBackend
}

type flowBackend struct {
	name   string
	id     uint16
	weight int
	state  string
}

func (s *flowService) last() *flowVersion { return &s.versions[len(s.versions)-1] }

// at is the version that a change left.
func (s *flowService) at(change int) *flowVersion { return &s.versions[s.place(change)] }

func (s *flowService) place(change int) int {
	place := len(s.versions) - 1
	for s.versions[place].change > change {
		place--
	}
	return place
}

func (s *flowService) port() uint16 {
	if s.protocol == "udp" {
		return 53
	}
	return 80
}

// text is the service in a node file.
func (s *flowService) text(v *flowVersion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    - {name: %s, vip: %q, protocol: %s, port: %d, policy: %s, table: %s, "+
		"returnHold: 0s, drainTime: 1h", s.name, s.vip, s.protocol, s.port(), s.policy, s.table)
	if s.maxBackends > 0 {
		fmt.Fprintf(&b, ", maxBackends: %d", s.maxBackends)
	}
	if s.policy == "offer" {
		fmt.Fprintf(&b, ", candidates: %d, depth: %d", s.candidates, s.depth)
	}
	b.WriteString(", backends: [")
	for i, backend := range v.backends {
		fmt.Fprintf(&b, "%.*s{name: %s, sid: %q, weight: %d, state: %s}", 2*min(i, 1), ", ",
			backend.name, backend.sid(), backend.weight, backend.state)
	}
	b.WriteString("]}\n")
	return b.String()
}

func (b flowBackend) sid() string { return fmt.Sprintf("fcbb:bb00:%x::", b.id) }

// flowPlan are services, and what is done to them.
type flowPlan struct {
	*rand.Rand
	oracle   *flowOracle
	services []*flowService
	calls    []func(context.Context, *api.Client) error // of change 1 and so on
	head     string                                     // of the node file
}

// kinds of services come in turn.
var flowKinds = []flowService{
	{maxBackends: 10, candidates: 2, depth: 6},
	{maxBackends: 12, candidates: 2, depth: 6, protocol: "udp"},
	{maxBackends: 10, candidates: 1, depth: 6},
	{candidates: 3, depth: 6},
	{maxBackends: 16, policy: "ecmp"},
	{maxBackends: 20, candidates: 2, depth: 4},
	{maxBackends: 10, policy: "shadow"},
	{maxBackends: 25, candidates: 2, depth: 6},
	{maxBackends: 10, policy: "ecmp", table: "modulo"},
	{maxBackends: 10, candidates: 1, depth: 1},
}

// add adds a service of a kind.
func (p *flowPlan) add(kind flowService, backends int) *flowService {
	i := len(p.services)
	s := new(kind)
	s.name = fmt.Sprint("s", i)
	vip := netip.MustParseAddr("2001:db8:80::").As16()
	vip[14], vip[15] = byte(i>>8), byte(i)
	s.vip = netip.AddrFrom16(vip)
	if i/len(flowKinds)%3 == 0 {
		s.vip = netip.AddrFrom4([4]byte{10, 80, byte(i >> 8), byte(i)})
	}
	if kind.protocol == "udp" {
		s.vip = p.services[i-1].vip // the same address and another protocol
	}
	if s.protocol == "" {
		s.protocol = "tcp"
	}
	if s.policy == "" {
		s.policy = "offer"
	} else {
		s.candidates, s.depth = 1, 1
	}
	if s.table == "" {
		s.table = "rendezvous"
	}
	host := s.vip.String()
	if s.vip.Is6() {
		host = "[" + host + "]"
	}
	s.seed = splitMix(p.oracle.sip(1, 3, fmt.Sprintf("%s:%d/%s", host, s.port(), s.protocol)))
	s.buckets = bucketsOf(s.maxBackends)
	s.versions = []flowVersion{{}}
	for range backends {
		s.last().backends = append(s.last().backends, p.backend(s))
	}
	if s.table == "rendezvous" && i%2 == 1 {
		for b := range s.last().backends {
			s.last().backends[b].weight = 1 + p.IntN(5)
		}
	}
	p.services = append(p.services, s)
	return s
}

// backend makes one more for a service.
func (p *flowPlan) backend(s *flowService) flowBackend {
	for {
		id := uint16(1 + p.IntN(57000))
		if s.last().state(id) == "" {
			return flowBackend{fmt.Sprintf("b%x", id), id, 1, "up"}
		}
	}
}

// change plans one: what becomes of services, and the call that does it.
func (p *flowPlan) change(call func(context.Context, *api.Client) error,
	become func(*flowService, *flowVersion), services ...*flowService) {
	p.calls = append(p.calls, call)
	for _, s := range services {
		next := *s.last()
		next.change, next.backends = len(p.calls), slices.Clone(next.backends)
		become(s, &next)
		s.versions = append(s.versions, next)
	}
}

// put changes the state or the weight of a backend.
func (p *flowPlan) put(s *flowService, backend int, state string, weight int) {
	before := s.last().backends[backend]
	word := config.BackendState(state)
	p.change(func(ctx context.Context, c *api.Client) error {
		_, err := c.PutBackend(ctx, api.Update, s.name, before.name,
			api.BackendSpec{State: &word, Weight: &weight})
		return err
	}, func(_ *flowService, v *flowVersion) {
		v.backends[backend].state, v.backends[backend].weight = state, weight
	}, s)
}

// join adds a backend.
func (p *flowPlan) join(s *flowService) {
	b := p.backend(s)
	sid := netip.MustParseAddr(b.sid())
	p.change(func(ctx context.Context, c *api.Client) error {
		_, err := c.PutBackend(ctx, api.Create, s.name, b.name, api.BackendSpec{SID: &sid})
		return err
	}, func(_ *flowService, v *flowVersion) { v.backends = append(v.backends, b) }, s)
}

// leave removes a backend.
func (p *flowPlan) leave(s *flowService, backend int) {
	name := s.last().backends[backend].name
	p.change(func(ctx context.Context, c *api.Client) error {
		_, err := c.DeleteBackend(ctx, s.name, name)
		return err
	}, func(_ *flowService, v *flowVersion) {
		v.backends = slices.Delete(v.backends, backend, backend+1)
	}, s)
}

// apply changes many services by one file.
func (p *flowPlan) apply(become func(*flowService, *flowVersion), services ...*flowService) {
	number := len(p.calls) + 1
	p.change(func(ctx context.Context, c *api.Client) error {
		_, err := c.EachWithin(10*patience).Apply(ctx, "node.yaml", p.text(number), false)
		return err
	}, become, services...)
}

// text is the node file after a change.
func (p *flowPlan) text(change int) []byte {
	var b strings.Builder
	b.WriteString(p.head)
	for _, s := range p.services {
		if v := s.at(change); !v.absent {
			b.WriteString(s.text(v))
		}
	}
	return []byte(b.String())
}
