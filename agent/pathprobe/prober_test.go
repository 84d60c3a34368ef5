package pathprobe_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sextant/agent/pathprobe"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// patience is when a test that waits gives up.
const patience = 30 * time.Second

// world is a head-end a, two routers, and an egress z that decapsulates with the kernel's End.DT6.
//
//	  +- b -+
//	a       z
//	  +- c -+
type world struct {
	t     *testing.T
	nodes map[string]*linux.Netns
	names map[string]string // of their namespaces
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, nodes: map[string]*linux.Netns{}, names: map[string]string{}}
	for i, node := range []string{"a", "b", "c", "z"} {
		ns, name := linuxtest.Netns(t)
		w.nodes[node], w.names[node] = ns, name
		must(t, ns.Do(func() error {
			return linux.WriteSysctl("net.ipv6.conf.all.forwarding",
				"1")
		}))
		w.ip(node, "link set lo up", fmt.Sprintf("addr add fd00:5e::%d/128 dev lo", i+1))
	}
	for i, pair := range []string{"ab", "ac", "bz", "cz"} {
		a, b := pair[:1], pair[1:]
		w.ip(a, fmt.Sprintf("link add to-%s type veth peer name to-%s netns %s", b, a, w.names[b]))
		w.ip(a, fmt.Sprintf("addr add fd00:%d::1/64 dev to-%s nodad", i, b), "link set to-"+b+" up")
		w.ip(b, fmt.Sprintf("addr add fd00:%d::2/64 dev to-%s nodad", i, a), "link set to-"+a+" up")
	}
	w.ip("a", "route add fcbb:bb00:b::/48 via fd00:0::2",
		"route add fcbb:bb00:c::/48 via fd00:1::2",
		"route add fcbb:bb00:a:c::/64 encap seg6local action End.X nh6 fd00:1::2 dev to-c")
	for i, r := range []string{"b", "c"} {
		w.ip(r, fmt.Sprintf("route add fcbb:bb00:%s::/128 encap seg6local action End dev to-a", r),
			fmt.Sprintf("route add fcbb:bb00:f::/48 via fd00:%d::2", i+2),
			fmt.Sprintf("route add fd00:5e::1/128 via fd00:%d::1", i))
	}
	w.ip("z", "route add fcbb:bb00:f::/64 encap seg6local action End.DT6 table main dev to-b",
		"route add fd00:5e::1/128 via fd00:2::1")
	return w
}

func (w *world) ip(node string, commands ...string) {
	w.t.Helper()
	for _, c := range commands {
		if out, err := exec.Command("ip", append([]string{"-6", "-n", w.names[node]},
			strings.Fields(c)...)...).CombinedOutput(); err != nil {
			w.t.Fatalf("%s: ip %s: %v\n%s", node, c, err, out)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lists(of map[int]string) (lists []pathprobe.List) {
	for slot, text := range of {
		l := pathprobe.List{Key: pathprobe.Key{Name: "p", Slot: slot}}
		for _, segment := range strings.Fields(text) {
			l.Segments = append(l.Segments, netip.MustParseAddr(segment))
		}
		lists = append(lists, l)
	}
	return lists
}

// Probes travel over the kernel's End, End.X and End.DT6, and links that are cut silence the lists
// that cross them.
func TestProbes(t *testing.T) {
	w := newWorld(t)
	var p *pathprobe.Prober
	must(t, w.nodes["a"].Do(func() (err error) {
		p, err = pathprobe.Open(pathprobe.Options{
			Own:      netip.MustParseAddr("fd00:5e::1"),
			Settings: pathprobe.Settings{Interval: 10 * time.Millisecond, Missed: 3, Good: 3},
			Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		return err
	}))
	t.Cleanup(func() { must(t, p.Close()) })
	must(t, p.Set(lists(map[int]string{
		0: "fcbb:bb00:b:: fcbb:bb00:f::", 1: "fcbb:bb00:c:: fcbb:bb00:f::",
		2: "fcbb:bb00:a:c:: fcbb:bb00:f::", // begins with a SID of the head-end itself
	})))
	await(t, p, "0+ 1+ 2+")
	w.ip("c", "link set to-z down")
	await(t, p, "1- 2-")
	w.ip("c", "link set to-z up", "addr add fd00:3::1/64 dev to-z nodad",
		"route replace fcbb:bb00:f::/48 via fd00:3::2")
	await(t, p, "1+ 2+")
	w.ip("z", "route del fd00:5e::1/128") // the way back
	await(t, p, "0- 1- 2-")
	w.ip("z", "route add fd00:5e::1/128 via fd00:3::1")
	await(t, p, "0+ 1+ 2+")
	for _, harm := range []string{"link del srv6probe", "link set srv6probe down"} {
		w.ip("a", harm)
		before, _ := p.Stats(pathprobe.Key{Name: "p"})
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			s, _ := p.Stats(pathprobe.Key{Name: "p"})
			if s.Received > before.Received+10 { // more than were under way
				break
			}
			if time.Now().After(end) {
				t.Fatalf("after %s no probe comes back: %+v", harm, s)
			}
		}
	}
	for slot := range 3 {
		s, ok := p.Stats(pathprobe.Key{Name: "p", Slot: slot})
		if !ok || !s.Answers || s.RTT <= 0 || s.RTT > patience || s.Least > s.RTT ||
			s.Received > s.Sent {
			t.Errorf("slot %d: %+v, %v", slot, s, ok)
		}
	}
	must(t, p.Set(nil))
	if _, ok := p.Stats(pathprobe.Key{Name: "p"}); ok {
		t.Error("a list that is not probed any more has statistics")
	}
}

// await waits for changes like "1+ 2-", in any order.
func await(t *testing.T, p *pathprobe.Prober, wanted string) {
	t.Helper()
	missing := map[string]bool{}
	for _, c := range strings.Fields(wanted) {
		missing[c] = true
	}
	end := time.After(patience)
	for len(missing) > 0 {
		select {
		case changes := <-p.Changes():
			for _, c := range changes {
				sign := "-"
				if c.Answers {
					sign = "+"
				}
				delete(missing, fmt.Sprint(c.Slot)+sign)
			}
		case <-end:
			t.Fatalf("never: %v", missing)
		}
	}
}
