package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/config"
)

var (
	flowCount = flag.Int("flows.count", 100_000, "flows of TestFlows")
	flowWidth = flag.Int("flows.services", 1000, "services of TestFlows; from 10,000 on one has "+
		"10,000 backends")
)

// gonePacket is the number of packets that no service is there for.
const gonePacket = 1<<32 - 1

// flow is one, and what is expected of it in each version of its service.
type flow struct {
	service *flowService
	client  netip.Addr
	port    uint16
	bucket  int
	want    []expected // nil: not known, of a service with table exact
}

func (f *flow) String() string {
	return fmt.Sprintf("port %d of %v to %s (%s, %s, %s, %d buckets)", f.port, f.client,
		f.service.name, f.service.protocol, f.service.policy, f.service.table, f.service.buckets)
}

// Packets of many flows through a running edge reach the backends that the definitions say, which
// the test computes by code of its own: before, during and after changes. A packet that is under
// way when its service changes goes where it was to go before, or where it is to go then.
func TestFlows(t *testing.T) {
	a := upFile(t, "flows.yaml")
	text, err := os.ReadFile(fileOf(t, a.lab, "edge"))
	must(t, err)
	n, err := config.Parse("node.yaml", text)
	must(t, err)
	p := &flowPlan{Rand: rand.New(rand.NewPCG(1, 2)), oracle: newFlowOracle(n.Secret),
		head: strings.TrimRight(string(text), "\n") + "\n  services:\n"}
	exact := p.servicesAndChanges(*flowWidth)
	flows := p.flows(*flowCount, exact)
	a.on("core", "ip", "-6", "route", "add", "blackhole", "fcbb:bb00::/32")
	a.on("edge", "ping", "-c", "1", "-w", "10", "fd00:5e::ff") // so that neighbors know each other
	begun := time.Now()
	_, err = a.client("edge").EachWithin(10*patience).Apply(t.Context(), "node.yaml", p.text(0),
		false)
	must(t, err)
	t.Logf("%d services in %.1f s", len(p.services), time.Since(begun).Seconds())
	w := newFlowWire(a)
	j := &flowJudge{t: t, wire: w}
	j.pass("before", flows, func(f *flow) bool { return f.service.at(0).absent })
	j.exact(exact, flows)

	changed := make(chan error, 1)
	go func() {
		for i, call := range p.calls {
			w.started.Store(int32(i + 1))
			if err := call(t.Context(), a.client("edge").BreakingConnections()); err != nil {
				changed <- fmt.Errorf("change %d: %w", i+1, err)
				return
			}
			w.done.Store(int32(i + 1))
		}
		close(changed)
	}()
	for over := false; !over; {
		j.pass("during", flows, func(f *flow) bool {
			return slices.ContainsFunc(f.service.versions,
				func(v flowVersion) bool { return v.absent })
		})
		select {
		case err := <-changed:
			must(t, err)
			over = true
		default:
		}
	}
	for i := range flows {
		if f := &flows[i]; f.service.last().absent {
			w.send(f, 0, gonePacket)
		}
	}
	j.pass("after", flows, func(f *flow) bool { return f.service.last().absent })
	j.exact(exact, flows)
	j.later()
	j.end()
}
