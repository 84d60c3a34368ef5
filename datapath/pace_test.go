package datapath

import (
	"math"
	"net"
	"testing"

	"sextant/lb/acceptance"
)

// TestPaceOfConnections: what a host knows of its pace is what its connections did. Each begins and
// ends by itself, so the time of each change is known from what the program notes, and the sums
// follow from those times alone.
func TestPaceOfConnections(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(t, w)
	policy := acceptance.Policy{Kind: acceptance.Delay, Cores: 2}
	must(t, h.SetService(ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}, 1, policy))
	l := listenBy(t, hostVIPv4, false)
	defer l.Close()
	read := func() acceptance.Pace {
		state, err := h.AcceptState(1)
		must(t, err)
		return state.Pace
	}
	work, done, changes := 0.0, 0.0, 0
	var at uint64
	moves := func(busyBefore int, ends float64, change func()) {
		t.Helper()
		change()
		wantBusy(t, h, "after a change", busyBefore+1-2*int(ends), 0)
		p := read()
		if at != 0 {
			passed := float64(p.At - at)
			work += passed * float64(min(busyBefore, 2))
			work, done = work/(1+passed/(1<<22)), done/(1+passed/(1<<22))
		}
		done += ends
		at = p.At
		changes++
		// rounded down once in each change
		if math.Abs(float64(p.Work)-work) > float64(changes) ||
			math.Abs(float64(p.Done)/65536-done) > float64(changes)/65536 {
			t.Fatalf("%d changes: %d ticks of work, %g connections; want %g and %g", changes,
				p.Work, float64(p.Done)/65536, work, done)
		}
	}
	var servers, peers []net.Conn
	open := func() {
		_, server, peer := connectTo(t, l, hostVIPv4, clientV4)
		servers, peers = append(servers, server), append(peers, peer)
	}
	for range 20 {
		for n := range 4 {
			moves(n, 0, open)
		}
		for n := 4; n > 0; n-- {
			moves(n, 1, func() {
				must(t, servers[n-1].Close())
				must(t, peers[n-1].Close())
			})
		}
		servers, peers = nil, nil
	}
	if done < 40 || work == 0 {
		t.Errorf("%g ticks of work and %g connections after 80", work, done)
	}
	// services of other policies note nothing
	must(t, h.SetService(ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}, 1,
		acceptance.Policy{Kind: acceptance.Average, Cores: 2}))
	before := read()
	open()
	wantBusy(t, h, "one more", 1, 0)
	if after := read(); after != before {
		t.Errorf("policy average: %+v, before %+v", after, before)
	}
	must(t, servers[0].Close())
	must(t, peers[0].Close())
}
