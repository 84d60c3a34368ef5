package agent_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/datapath"
)

// outside is an edge whose backends have SIDs outside of the block, in the order of these numbers.
func outside(backends ...int) string {
	var list strings.Builder
	for _, n := range backends {
		fmt.Fprintf(&list, "        - {name: web%d, sid: \"fd00:c0de:%x::80\"}\n", n, n)
	}
	head, _, _ := strings.Cut(nodeText, "      backends:\n")
	head = strings.NewReplacer(`"fcbb:bb00::/32",`, `"fcbb:bb00::/32", locators: ["fd00:c0de::/32"],`,
		"  source: fd00:5e::e1\n", "  source: fd00:5e::e1\n  encapsulation: srh\n").Replace(head)
	return head + "      returnHold: 0s\n      backends:\n" + list.String()
}

// sidChains are the chains of the edge's first service, by SIDs.
func (m *machine) sidChains() (list [][]netip.Addr) { return m.sidChainsOf(1) }

func (m *machine) sidChainsOf(service uint32) (list [][]netip.Addr) {
	m.t.Helper()
	sids, err := datapath.PinnedSIDs(filepath.Join(m.pins, "edge"))
	must(m.t, err)
	for _, c := range m.chainsOf(service) {
		var chain []netip.Addr
		for _, id := range c.IDs[:c.Length] {
			chain = append(chain, sids[id])
		}
		list = append(list, chain)
	}
	return list
}

// Edges that met backends in another order offer a connection to the same ones, whatever the form
// of their SIDs: packets of a flow may come to any of them.
func TestEdgesAgreeOnSIDsOutsideTheBlock(t *testing.T) {
	one, other := newMachine(t), newMachine(t)
	a := one.start(outside(1, 2, 3, 4, 5))
	defer a.stop()
	b := other.start(outside(5, 3))
	defer b.stop()
	_, err := b.Apply(t.Context(), "node.yaml",
		[]byte(other.text(outside(4, 5, 2, 3, 1))), false)
	must(t, err)
	// who owned buckets before is behind the candidates
	const candidates = 2
	here, there := one.sidChains(), other.sidChains()
	for bucket := range here {
		if !slices.Equal(here[bucket][:candidates], there[bucket][:candidates]) {
			t.Fatalf("bucket %d: %v, at the other edge %v", bucket, here[bucket], there[bucket])
		}
	}
}

// More SIDs outside of the block than there are ids which no compressed SID can have: the chains of
// each service name its backends, also after the agent has started again, and an edge beside it
// that met them in another order offers connections to the same ones.
func TestMoreSIDsThanLocalIDs(t *testing.T) {
	const of, services = 3000, 3
	text := func(order func(service int) int) string {
		var list strings.Builder
		for i := range services {
			s := order(i)
			fmt.Fprintf(&list, "    - name: s%d\n      vip: 2001:db8:80::a%d\n      port: 80\n"+
				"      returnHold: 0s\n      backends:\n", s, s)
			for b := range of {
				n := s*of + b + 1
				fmt.Fprintf(&list, "        - {name: web%d, sid: \"fd00:c0de:%x::80\"}\n", n, n)
			}
		}
		head, _, _ := strings.Cut(outside(1), "    - name: web\n")
		return head + list.String()
	}
	forwards, backwards := func(i int) int { return i }, func(i int) int { return services - 1 - i }
	m, other := newMachine(t), newMachine(t)
	a := m.start(text(forwards))
	var before [services][][]netip.Addr
	for i := range services {
		before[i] = m.sidChainsOf(uint32(i + 1))
		if len(before[i]) == 0 {
			t.Fatalf("service %d has no chains", i)
		}
		for bucket, chain := range before[i] {
			for _, sid := range chain {
				if n := int(sid.As16()[4])<<8 | int(sid.As16()[5]); (n-1)/of != i {
					t.Fatalf("service %d, bucket %d: %v is of another", i, bucket, sid)
				}
			}
		}
	}
	a.stop()
	defer m.start(text(forwards)).stop()
	defer other.start(text(backwards)).stop()
	for i := range services {
		if !slices.EqualFunc(m.sidChainsOf(uint32(i+1)), before[i], slices.Equal) {
			t.Errorf("service %d has other chains after the agent has started again", i)
		}
		beside := other.sidChainsOf(uint32(services - i))
		for bucket, chain := range before[i] {
			if !slices.Equal(beside[bucket][:2], chain[:2]) { // the candidates
				t.Fatalf("service %d, bucket %d: %v, at another edge %v", i, bucket, chain,
					beside[bucket])
			}
		}
	}
}

// Ids of backends that are gone are given to others, and chains name none but the backends of now.
func TestSIDsComeAndGo(t *testing.T) {
	const at, rounds = 3000, 3
	backends := func(round int) (list []int) {
		for i := range at {
			list = append(list, round*at+i+1)
		}
		return list
	}
	m := newMachine(t)
	a := m.start(outside(backends(0)...))
	defer a.stop()
	for round := range rounds {
		if round > 0 {
			_, err := a.BreakingConnections().Apply(t.Context(), "node.yaml",
				[]byte(m.text(outside(backends(round)...))), false)
			if err != nil {
				t.Fatalf("%d SIDs after %d others: %.500v", at, round*at, err)
			}
		}
		now := map[netip.Addr]bool{}
		for _, n := range backends(round) {
			now[netip.MustParseAddr(fmt.Sprintf("fd00:c0de:%x::80", n))] = true
		}
		for bucket, chain := range m.sidChains() {
			for _, sid := range chain {
				if !now[sid] {
					t.Fatalf("round %d, bucket %d: %v names %s, which is gone", round, bucket,
						chain, sid)
				}
			}
		}
	}
}
