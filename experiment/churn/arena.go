package churn

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/examples"
	"sextant/kernel"
	"sextant/lab"
)

// Of examples/churn.yaml.
const servers = 8

// clientRange are the addresses of the lab's client.
const clientRange = "2001:db8:c::/112"

// server names a server by its number from 0.
func server(i int) string { return "web" + strconv.Itoa(i+1) }

// arena is the lab of examples/churn.yaml while it is up.
type arena struct {
	lab    *lab.Lab
	client *kernel.Netns
	hosts  []*kernel.Netns
}

// The paper's client cannot take all that eight servers send, and 8 % of its downloads of 5 MB take longer than 2 s. So do those
// here with this rate, in bits per second, and this queue.
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

// within builds the lab, calls body and takes the lab down again, whatever happens. If ctx ends before, the error wraps its cause.
func within(ctx context.Context, s setting, body func(context.Context, *arena) error) error {
	spec, err := lab.Parse("churn.yaml", examples.Churn)
	if err != nil {
		return err
	}
	spec.Name = s.name
	for i := range spec.Links {
		link := &spec.Links[i]
		switch {
		case s.fast:
			link.RateBits, link.BurstBytes, link.Latency = 0, 0, 0
		case s.client && link.Ends[0].Node == "client":
			link.RateBits, link.Latency = clientRate, clientQueue
		}
	}
	return lab.Run(ctx, spec, lab.Options{Events: s.observer}, func(ctx context.Context, l *lab.Lab) error {
		a := &arena{lab: l}
		defer a.close()
		err := a.open()
		if err == nil {
			err = body(ctx, a)
		}
		if ctx.Err() != nil { // whatever error that led to
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		return err
	})
}

func (a *arena) open() (err error) {
	if a.client, err = a.namespace("client"); err != nil {
		return err
	}
	for i := range servers {
		host, err := a.namespace(server(i))
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, host)
	}
	return nil
}

func (a *arena) close() {
	for _, host := range a.hosts {
		host.Close()
	}
	if a.client != nil {
		a.client.Close()
	}
}

func (a *arena) namespace(node string) (*kernel.Netns, error) {
	n, err := a.lab.Node(node)
	if err != nil {
		return nil, err
	}
	return kernel.OpenNetns(n.Namespace)
}

func (a *arena) agent(node string) (*api.Client, error) {
	n, err := a.lab.Node(node)
	if err != nil {
		return nil, err
	}
	return api.NewClient(n.Socket), nil
}

// traffic is what servers have done so far.
type traffic struct {
	redirected uint64 // packets of connections that were elsewhere, sent on
	taken      uint64 // packets for the server's own stack
	resets     uint64 // TCP segments with RST
}

func (t traffic) minus(o traffic) traffic {
	return traffic{t.redirected - o.redirected, t.taken - o.taken, t.resets - o.resets}
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
	}
	return sum, nil
}

func (a *arena) trafficOf(ctx context.Context, i int) (t traffic, err error) {
	client, err := a.agent(server(i))
	if err != nil {
		return t, err
	}
	counters, err := client.Counters(ctx)
	if err != nil {
		return t, err
	}
	for _, c := range counters {
		t.redirected += c.ForwardedPackets()
		t.taken += c.TakenPackets
	}
	t.resets, err = resets(a.hosts[i])
	return t, err
}

// resets reads how many segments with RST a namespace has sent: OutRsts in /proc/net/snmp, which counts IPv6 too.
func resets(ns *kernel.Netns) (count uint64, err error) {
	var text []byte
	err = ns.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		return 0, err
	}
	return parseResets(string(text))
}

// parseResets finds OutRsts among two lines that begin with "Tcp:", the first with names and the second with values.
func parseResets(text string) (uint64, error) {
	var names []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Tcp:") {
			continue
		}
		fields := strings.Fields(line)
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "OutRsts" && i < len(fields) {
				return strconv.ParseUint(fields[i], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("/proc/net/snmp has no OutRsts; this needs a Linux kernel with procfs mounted")
}

// sentBytes reads what a server's interface has sent.
func sentBytes(ns *kernel.Netns) (uint64, error) {
	handle, err := ns.Netlink()
	if err != nil {
		return 0, err
	}
	defer handle.Close()
	link, err := handle.LinkByName("eth0")
	if err != nil {
		return 0, kernel.Failed(err, "read the counters of a server's eth0")
	}
	return link.Attrs().Statistics.TxBytes, nil
}
