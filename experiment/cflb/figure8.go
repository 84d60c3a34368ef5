package cflb

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/experiment"
	"sextant/lab"
)

var figure8 = experiment.Experiment{
	Name: "cflb-fig8", Title: "Packets per second of a router, by hash and by cipher",
	Source: "Detal et al., figure 8",
	Shows: "A router forwards UDP packets of 64 octets over IPv6 to seven next hops: by the " +
		"kernel's own ECMP over addresses and over the 5-tuple, by our hash, and by CFLB with " +
		"each cipher, with the kernel forwarding (TC) and with the program forwarding (XDP). One " +
		"processor makes, forwards and counts the packets: what making them takes is the same " +
		"for all.",
	Paper: experiment.CFLB, Needs: []string{"root"}, Lasts: "2 min",
	Run: runFigure8,
}

// forwarder is a way to forward: how the router's configuration and kernel are set.
type forwarder struct {
	name   string
	role   string // the section cflb's family; "": the router has no role
	xdp    bool
	policy string // fib_multipath_hash_policy, without a role
}

func forwarders() []forwarder {
	all := []forwarder{{name: "kernel, addresses", policy: "0"},
		{name: "kernel, 5-tuple", policy: "1"}}
	for _, xdp := range []bool{false, true} {
		by := map[bool]string{false: "TC", true: "XDP"}[xdp]
		// a flow label of 0 controls nothing, so that all packets are hashed
		all = append(all, forwarder{name: by + ", hash", role: "{fields: flow-label, radix: 8}",
			xdp: xdp})
		for _, cipher := range []string{"feistel", "rc5", "skip32"} {
			all = append(all, forwarder{name: by + ", " + cipher, xdp: xdp,
				role: "{fields: ports, radix: 8, cipher: " + cipher + "}"})
		}
	}
	return all
}

const (
	pushPasses  = 151    // over all routers, one round each
	pushQuick   = 31     // if the experiment is quick
	pushPackets = 20_000 // of a round: 5 to 30 ms, so that those of a pass meet the same machine
)

var (
	client6 = netip.MustParseAddr("2001:db8:1::1")
	server6 = netip.MustParseAddr("2001:db8:2::1")
	near6   = netip.MustParseAddr("2001:db8::1")
	far6    = netip.MustParseAddr("2001:db8::2")
)

// spec8 is the lab for a way to forward.
func spec8(f forwarder, number int) (*lab.Spec, error) {
	return parallel(fmt.Sprintf("cflb-fig8-%d", number), func(s *lab.Spec) {
		for i := range s.Links {
			s.Links[i].RateBits = 0
		}
		for i := range s.Nodes {
			switch n := &s.Nodes[i]; n.Name {
			case "client":
				n.Addresses = append(n.Addresses, client6)
			case "server":
				n.Addresses = append(n.Addresses, server6)
			case "near":
				n.Addresses = append(n.Addresses, near6)
				f.configure(n)
			case "far":
				n.Addresses = append(n.Addresses, far6)
			}
		}
	})
}

// configure makes a node a router of this kind.
func (f forwarder) configure(n *lab.NodeSpec) {
	if f.role == "" {
		n.Sextant = ""
		n.Sysctls = append(n.Sysctls,
			lab.Sysctl{Name: "net.ipv6.fib_multipath_hash_policy", Value: f.policy})
		return
	}
	interfaces, forwarding := "[{name: client}]", "kernel"
	if f.xdp {
		forwarding = "xdp"
		interfaces = "[{name: client}, {name: l1}, {name: l2}, {name: l3}, {name: l4}, " +
			"{name: l5}, {name: l6}, {name: l7}]"
	}
	n.Sextant = strings.NewReplacer("[{name: client}]", interfaces+"\n  forwarding: "+forwarding,
		"ipv4: {fields: source-port, radix: 8}", "ipv6: "+f.role).Replace(n.Sextant)
}

// rates are packets per second of processor time, by router and by pass.
type rates map[string][]float64

func runFigure8(ctx context.Context, r *experiment.Recorder) error {
	passes := pushPasses
	if r.Quick() {
		passes = pushQuick
	}
	found, err := experiment.Part(r, "rates", func() (found rates, err error) {
		err = withPushes(ctx, r, nil, func(pushes []*push) (err error) {
			found, err = alternate(ctx, r, pushes, passes)
			return err
		})
		return found, err
	})
	if err != nil {
		return err
	}
	return reportFigure8(r, found)
}

// withPushes brings up the labs of all routers, of which those of pushes are, and calls body.
func withPushes(ctx context.Context, r *experiment.Recorder, pushes []*push,
	body func([]*push) error) error {
	number := len(pushes)
	if number == len(forwarders()) {
		return body(pushes)
	}
	f := forwarders()[number]
	r.Progress("lab %d of %d: %s", number+1, len(forwarders()), f.name)
	spec, err := spec8(f, number)
	if err != nil {
		return err
	}
	return experiment.InLab(ctx, spec, lab.Options{}, func(ctx context.Context,
		l *experiment.Arena) error {
		p, err := newPush(l)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		defer p.close()
		if err := p.begin(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		return withPushes(ctx, r, append(pushes, p), body)
	})
}

// alternate pushes packets through the routers in turn: what the machine does beside this takes
// from all of them alike. Every other pass has the reverse order.
func alternate(ctx context.Context, r *experiment.Recorder, pushes []*push,
	passes int) (rates, error) {
	found := rates{}
	for pass := range passes {
		r.Progress("pass %d of %d", pass+1, passes)
		for i := range pushes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if pass%2 == 1 {
				i = len(pushes) - 1 - i
			}
			name := forwarders()[i].name
			rate, err := pushes[i].round(pushPackets)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			found[name] = append(found[name], rate)
		}
	}
	return found, nil
}

// besides are, of each pass, the rate of one router beside that of another, less 1, sorted.
func besides(one, other []float64) (parts []float64) {
	for pass, rate := range one {
		parts = append(parts, rate/other[pass]-1)
	}
	return slices.Sorted(slices.Values(parts))
}

func reportFigure8(r *experiment.Recorder, found rates) error {
	table := experiment.Table{Name: "fig8", Title: "Packets forwarded per second of a processor",
		Columns: []string{"Router", "Packets per second", "ns per packet", "Beside hashing",
			"Middle half"}}
	for _, f := range forwarders() {
		rate := quantile(slices.Sorted(slices.Values(found[f.name])), 0.5)
		beside, middle := "-", "-"
		if by, method, _ := strings.Cut(f.name, ", "); by != "kernel" && method != "hash" {
			parts := besides(found[f.name], found[by+", hash"])
			beside = fmt.Sprintf("%+.1f %%", 100*quantile(parts, 0.5))
			middle = fmt.Sprintf("%+.1f to %+.1f %%", 100*quantile(parts, 0.25),
				100*quantile(parts, 0.75))
			source := cmp.Or(map[string]string{"rc5": "-1.8 %", "skip32": "-12.3 %"}[method], "-")
			r.Compare(experiment.Comparison{What: "packets per second beside hashing, " + f.name,
				Source: source, Ours: beside, Says: "at most 2 % less is the goal for feistel"})
		}
		table.Add(f.name, fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", 1e9/rate), beside, middle)
	}
	r.Table(table)
	r.Note("medians of %d passes, in each of which all routers have a round, one after the other; "+
		"beside hashing: the median of the passes' ratios", len(found[forwarders()[0].name]))
	r.Note("a processor makes the packets, forwards and counts them, in the thread that makes " +
		"them: its time is what is shown, without that of other programs")
	return nil
}
