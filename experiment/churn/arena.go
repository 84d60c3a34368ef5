package churn

import (
	"context"
	"strconv"
	"time"

	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
)

// Of examples/churn.yaml.
const servers = 8

// clientRange are the addresses of the lab's client.
const clientRange = "2001:db8:c::/112"

// server names a server by its number from 0.
func server(i int) string { return "web" + strconv.Itoa(i+1) }

// arena is the lab of examples/churn.yaml while it is up.
type arena struct{ *experiment.Arena }

func (a *arena) host(i int) *linux.Netns { return a.Spaces[server(i)] }

// The paper's client cannot take all that eight servers send, and 8 % of its downloads of 5 MB take
// longer than 2 s. So do those here with this rate, in bits per second, and this queue.
const (
	clientRate  = 64_000_000
	clientQueue = 100 * time.Millisecond
)

// setting says how the lab differs from the file.
type setting struct {
	name     string // of the lab
	fast     bool   // links without a rate
	client   bool   // the client's link has a rate, clientRate
	observer func(lab.Event)
}

// within builds the lab of a setting and calls body, as experiment.InLab does.
func within(ctx context.Context, s setting, body func(context.Context, *arena) error) error {
	return experiment.InExample(ctx, s.name, examples.Churn, s.prepare,
		lab.Options{Events: s.observer},
		func(ctx context.Context, a *experiment.Arena) error { return body(ctx, &arena{a}) })
}

func (s setting) prepare(spec *lab.Spec) error {
	for i := range spec.Links {
		link := &spec.Links[i]
		switch {
		case s.fast:
			link.RateBits, link.BurstBytes, link.Latency = 0, 0, 0
		case s.client && link.Ends[0].Node == "client":
			link.RateBits, link.Latency = clientRate, clientQueue
		}
	}
	return nil
}

// traffic is what servers have done so far.
type traffic struct {
	redirected uint64 // packets of connections that were elsewhere, sent on
	taken      uint64 // packets for the server's own stack
	resets     uint64 // TCP segments with RST
	givenUp    uint64 // connections whose client was not heard of any more
}

func (t traffic) minus(o traffic) traffic {
	return traffic{t.redirected - o.redirected, t.taken - o.taken, t.resets - o.resets,
		t.givenUp - o.givenUp}
}

// share is that of redirected packets in all that arrived.
func (t traffic) share() float64 {
	return float64(t.redirected) / float64(max(1, t.redirected+t.taken))
}

// traffic asks all servers.
func (a *arena) traffic(ctx context.Context) (sum traffic, err error) {
	for i := range servers {
		one, err := a.trafficOf(ctx, i)
		if err != nil {
			return traffic{}, err
		}
		sum.redirected += one.redirected
		sum.taken += one.taken
		sum.resets += one.resets
		sum.givenUp += one.givenUp
	}
	return sum, nil
}

func (a *arena) trafficOf(ctx context.Context, i int) (t traffic, err error) {
	counters, err := a.Agents[server(i)].Counters(ctx)
	if err != nil {
		return t, err
	}
	for _, c := range counters {
		t.redirected += c.ForwardedPackets()
		t.taken += c.TakenPackets
	}
	tcp, err := a.host(i).TCPCounters("OutRsts", "TCPAbortOnTimeout")
	t.resets, t.givenUp = tcp["OutRsts"], tcp["TCPAbortOnTimeout"]
	return t, err
}

// sentBytes reads what a server's interface has sent.
func sentBytes(ns *linux.Netns) (uint64, error) {
	handle, err := ns.Netlink()
	if err != nil {
		return 0, err
	}
	defer handle.Close()
	link, err := handle.LinkByName("eth0")
	if err != nil {
		return 0, linux.Failed(err, "read the counters of a server's eth0")
	}
	return link.Attrs().Statistics.TxBytes, nil
}
