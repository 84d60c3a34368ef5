package kernelfib_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/routing/equalcost"
	"sextant/routing/kernelfib"
)

func followRouter(t *testing.T, ns *linux.Netns) *kernelfib.Router {
	t.Helper()
	var r *kernelfib.Router
	must(t, ns.Do(func() (err error) {
		r, err = kernelfib.FollowRouter(slog.New(slog.NewTextHandler(t.Output(), nil)))
		return err
	}))
	t.Cleanup(r.Close)
	return r
}

// tableText is what a router has, in the words of a test: a line for each destination with several
// next hops, with the kernel's place of each if it is not its index.
func tableText(t *testing.T, r *kernelfib.Router) map[string]string {
	t.Helper()
	state, err := r.Take()
	must(t, err)
	table := equalcost.Compute(state)
	text := map[string]string{}
	for prefix, hops := range table.Sets {
		var words []string
		for i, hop := range hops {
			word := fmt.Sprintf("%s %s*%d", hop.Gateway, hop.Interface, hop.Weight)
			if hop.Down {
				word += " down"
			}
			if hop.Place != i {
				word += fmt.Sprintf(" place %d", hop.Place)
			}
			words = append(words, word)
		}
		text[prefix.String()] = strings.Join(words, ", ")
	}
	for prefix, why := range table.Left {
		text[prefix.String()] = why.String()
	}
	return text
}

func awaitTable(t *testing.T, r *kernelfib.Router, want map[string]string) {
	t.Helper()
	for end := time.After(time.Minute); ; {
		diff := cmp.Diff(want, tableText(t, r))
		if diff == "" {
			return
		}
		select {
		case <-r.Changes():
		case <-end:
			t.Fatalf("never as wanted: -want +got:\n%s", diff)
		}
	}
}

// links gives a namespace three links, each with a router behind it.
func links(t *testing.T, ns *linux.Netns) {
	t.Helper()
	for i := 1; i <= 3; i++ {
		ip(t, ns, fmt.Sprintf("link add v%d type veth peer name w%d", i, i),
			fmt.Sprintf("addr add 10.0.%d.1/24 dev v%d", i, i),
			fmt.Sprintf("addr add fd00:0:0:%d::1/64 dev v%d nodad", i, i),
			fmt.Sprintf("link set w%d up", i), fmt.Sprintf("link set v%d up", i))
	}
}

const (
	via1, via2, via3 = " nexthop via 10.0.1.2 dev v1", " nexthop via 10.0.2.2 dev v2",
		" nexthop via 10.0.3.2 dev v3"
	six1, six2, six3 = " nexthop via fd00:0:0:1::2 dev v1", " nexthop via fd00:0:0:2::2 dev v2",
		" nexthop via fd00:0:0:3::2 dev v3"
)

// The order of next hops is the same however they came into the kernel: in whatever order, as
// routes of several next hops, as routes that are appended, as groups of next hop objects.
func TestRouterOrder(t *testing.T) {
	ns := newNetns(t)
	links(t, ns)
	ip(t, ns, "route add 192.0.2.0/24"+via3+via1+" weight 3"+via2,
		"route add 198.51.100.0/24 metric 5"+via1+via2+via3, "route add 198.51.100.0/24"+
			" via 10.0.1.2 metric 7",
		"-6 route add 2001:db8:1::/48"+six2+" weight 256"+six1,
		"-6 route add 2001:db8:2::/48 via fd00:0:0:3::2", "-6 route append 2001:db8:2::/48"+
			" via fd00:0:0:1::2",
		"nexthop add id 1 via 10.0.1.2 dev v1", "nexthop add id 2 via 10.0.2.2 dev v2",
		"nexthop add id 3 via fd00:0:0:3::2 dev v3", "nexthop add id 4 via fd00:0:0:1::2 dev v1",
		"nexthop add id 10 group 2,7/1,9", "nexthop add id 11 group 3/4",
		"nexthop add id 12 group 1/2 type resilient buckets 64",
		"route add 203.0.113.0/24 nhid 10", "-6 route add 2001:db8:3::/48 nhid 11",
		"route add 203.0.113.64/26 nhid 12", "route add 203.0.113.128/25 via 10.0.1.2",
		"route add 203.0.113.192/26 tos 0x10"+via1+via2, "route add 192.0.2.7 via 10.0.2.2",
		"addr add 192.0.2.9/32 dev lo", "route add blackhole 198.51.100.9",
		"route add 10.9.0.0/16 via inet6 fd00:0:0:1::2 dev v1")
	r := followRouter(t, ns)
	awaitTable(t, r, map[string]string{
		"192.0.2.0/24":     "10.0.1.2 v1*3 place 1, 10.0.2.2 v2*1 place 2, 10.0.3.2 v3*1 place 0",
		"198.51.100.0/24":  "10.0.1.2 v1*1, 10.0.2.2 v2*1, 10.0.3.2 v3*1",
		"2001:db8:1::/48":  "fd00:0:0:1::2 v1*1 place 1, fd00:0:0:2::2 v2*256 place 0",
		"2001:db8:2::/48":  "fd00:0:0:1::2 v1*1 place 1, fd00:0:0:3::2 v3*1 place 0",
		"203.0.113.0/24":   "10.0.1.2 v1*9 place 1, 10.0.2.2 v2*7 place 0",
		"2001:db8:3::/48":  "fd00:0:0:1::2 v1*1 place 1, fd00:0:0:3::2 v3*1 place 0",
		"203.0.113.64/26":  equalcost.Resilient.String(),
		"203.0.113.192/26": equalcost.Selective.String(),
	})
	state, _ := r.Take()
	want := []netip.Prefix{}
	for _, p := range []string{"192.0.2.7/32", "192.0.2.9/32", "198.51.100.9/32",
		"203.0.113.64/26", "203.0.113.128/25", "203.0.113.192/26"} {
		want = append(want, netip.MustParsePrefix(p))
	}
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(equalcost.Compute(state).Kernel)); diff != "" {
		t.Errorf("left to the kernel: -want +got:\n%s", diff)
	}
}

// A next hop whose link goes down keeps its index; one that is withdrawn renumbers others, which is
// counted.
func TestRouterFollows(t *testing.T) {
	ns := newNetns(t)
	links(t, ns)
	ip(t, ns, "route add 192.0.2.0/24"+via1+via2+via3,
		"-6 route add 2001:db8:1::/48"+six1+six2+six3)
	r := followRouter(t, ns)
	all := map[string]string{
		"192.0.2.0/24":    "10.0.1.2 v1*1, 10.0.2.2 v2*1, 10.0.3.2 v3*1",
		"2001:db8:1::/48": "fd00:0:0:1::2 v1*1, fd00:0:0:2::2 v2*1, fd00:0:0:3::2 v3*1",
	}
	awaitTable(t, r, all)
	before, _ := r.Take()
	ip(t, ns, "link set v2 down")
	awaitTable(t, r, map[string]string{
		"192.0.2.0/24":    "10.0.1.2 v1*1, 10.0.2.2 v2*1 down, 10.0.3.2 v3*1",
		"2001:db8:1::/48": "fd00:0:0:1::2 v1*1, fd00:0:0:2::2 v2*1 down, fd00:0:0:3::2 v3*1",
	})
	now, _ := r.Take()
	if n := equalcost.Compute(now).Renumbered(equalcost.Compute(before)); n != 0 {
		t.Errorf("%d renumbered when a link went down, want none", n)
	}
	ip(t, ns, "link set v2 up", "route replace 192.0.2.0/24"+via1+via3)
	awaitTable(t, r, map[string]string{
		"192.0.2.0/24": "10.0.1.2 v1*1, 10.0.3.2 v3*1",
		// the address went with the link, but the next hop comes back with it
		"2001:db8:1::/48": "fd00:0:0:1::2 v1*1, fd00:0:0:2::2 v2*1, fd00:0:0:3::2 v3*1",
	})
	now, _ = r.Take()
	if n := equalcost.Compute(now).Renumbered(equalcost.Compute(before)); n != 1 {
		t.Errorf("%d renumbered when a next hop of three was withdrawn, want 1", n)
	}
}

// Whatever is done to the routes, a router that has followed knows what one says that reads them at
// the end.
func TestRouterFollowsAll(t *testing.T) {
	ns := newNetns(t)
	links(t, ns)
	ip(t, ns, "nexthop add id 1 via 10.0.1.2 dev v1", "nexthop add id 2 via 10.0.2.2 dev v2",
		"nexthop add id 9 group 1/2")
	r := followRouter(t, ns)
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		pick := func(list ...string) string { return list[random.IntN(len(list))] }
		to, family, hops := fmt.Sprintf("192.0.2.%d/32", random.IntN(4)), "",
			pick(via1+via2, via2+" weight 9"+via3, via3, via3+via2+via1, " nhid 9", " dev v1")
		if random.IntN(2) == 0 {
			to, family, hops = fmt.Sprintf("2001:db8::%d/128", random.IntN(4)), "-6 ",
				pick(six1+six2, six2+" weight 9"+six3, six3, " via fd00:0:0:1::2")
		}
		link := fmt.Sprintf("link set v%d ", 1+random.IntN(3))
		line := pick(family+"route replace "+to+hops, family+"route append "+to+hops,
			family+"route del "+to, link+"down", link+"up",
			"nexthop replace id 9 group "+pick("1", "2", "1/2", "2,4/1"))
		must(t, ns.Do(func() error { _ = linuxtest.IP(line); return nil })) // some are refused
	}
	awaitTable(t, r, tableText(t, followRouter(t, ns)))
}
