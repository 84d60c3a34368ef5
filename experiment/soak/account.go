package soak

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sextant/linux"
)

// account is what became of a node's packets, by the metrics that its agent exports.
type account struct {
	// given to the program, and arrived at its interface
	In       uint64            `json:"in"`
	Outcomes map[string]uint64 `json:"outcomes"` // sextant_packets_total
	Drops    map[string]uint64 `json:"drops"`    // sextant_drops_total
	// sextant_flow_cache_packets_total, which are among the others
	Cache map[string]uint64 `json:"cache"`
}

// counted is how many packets have any counter.
func (a account) counted() (sum uint64) {
	for _, n := range a.Outcomes {
		sum += n
	}
	return sum + a.dropped()
}

func (a account) dropped() (sum uint64) {
	for _, n := range a.Drops {
		sum += n
	}
	return sum
}

func (a account) minus(o account) account {
	return account{
		In:       a.In - o.In,
		Outcomes: difference(a.Outcomes, o.Outcomes), Drops: difference(a.Drops, o.Drops),
		Cache: difference(a.Cache, o.Cache),
	}
}

func difference(a, b map[string]uint64) map[string]uint64 {
	d := map[string]uint64{}
	for name, n := range a {
		d[name] = n - b[name]
	}
	return d
}

// readMetrics adds up the samples for a role. The flow cache is the edge's, and has no label for
// that.
func readMetrics(text []byte, role string) (account, error) {
	a := account{Outcomes: map[string]uint64{}, Drops: map[string]uint64{},
		Cache: map[string]uint64{}}
	metrics := map[string]map[string]uint64{
		"sextant_packets_total": a.Outcomes, "sextant_drops_total": a.Drops,
		"sextant_flow_cache_packets_total": a.Cache,
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, ok := strings.Cut(lines.Text(), "{")
		into := metrics[name]
		labels, value, closed := strings.Cut(rest, "} ")
		if of := label(labels, "role"); !ok || into == nil || of != role && of != "" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !closed {
			return a, fmt.Errorf("read the metric %q: it has no number", lines.Text())
		}
		into[label(labels, "outcome")+label(labels, "reason")+label(labels, "event")] += uint64(n)
	}
	if len(a.Outcomes) == 0 || len(a.Drops) == 0 {
		return a, fmt.Errorf("the agent exports no sextant_packets_total or no "+
			"sextant_drops_total of the role %s", role)
	}
	return a, nil
}

// label returns a label's value, "" if there is none of that name.
func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// arrived reads how many packets eth0 has received: for a veth with an XDP program, those that the
// program was run on.
func (n *node) arrived() (uint64, error) {
	handle, err := n.ns.Netlink()
	if err != nil {
		return 0, err
	}
	defer handle.Close()
	link, err := handle.LinkByIndex(n.ingress)
	if err != nil {
		return 0, linux.Failed(err, "read the counters of eth0 of node %s", n.Name)
	}
	return link.Attrs().Statistics.RxPackets, nil
}

// read reads the account. Packets can arrive meanwhile.
func (n *node) read(ctx context.Context) (account, error) {
	arrived, err := n.arrived()
	if err != nil {
		return account{}, err
	}
	text, err := n.agent.MetricsText(ctx)
	if err != nil {
		return account{}, fmt.Errorf("node %s: %w", n.Name, err)
	}
	a, err := readMetrics(text, n.role)
	a.In = arrived + n.fed
	return a, err
}

// quiet is how often it is tried to find a moment in which nothing arrives.
const quiet = 40

// open begins the account: from here on each packet counts.
func (n *node) open(ctx context.Context) (err error) {
	for range quiet {
		before, failed := n.arrived()
		if n.start, err = n.read(ctx); err != nil || failed != nil {
			return err
		}
		time.Sleep(settleTime)
		after, failed := n.arrived()
		if failed != nil || before == after {
			return failed
		}
	}
	return fmt.Errorf("node %s: packets come without a pause, so that nothing can be counted",
		n.Name)
}

const settleTime = 25 * time.Millisecond

// balance returns the account since it was opened. That packets in are packets counted must hold in
// a moment in which nothing arrives.
func (n *node) balance(ctx context.Context) (a account, err error) {
	for range quiet {
		now, err := n.read(ctx)
		if err != nil {
			return a, err
		}
		if a = now.minus(n.start); a.In == a.counted() {
			return a, nil
		}
		time.Sleep(settleTime)
	}
	return a, fmt.Errorf("node %s: %d packets in, but %d counted: outcomes %v, drops %v", n.Name,
		a.In, a.counted(), a.Outcomes, a.Drops)
}
