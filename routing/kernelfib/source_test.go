package kernelfib_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
)

// watched is a source, and what its changes came to.
type watched struct {
	*kernelfib.Source
	t     *testing.T
	state map[string]string
}

func watch(t *testing.T, ns *linux.Netns, tables ...uint32) *watched {
	t.Helper()
	w := &watched{t: t, state: map[string]string{}}
	must(t, ns.Do(func() (err error) {
		w.Source, err = kernelfib.Watch(tables, slog.New(slog.NewTextHandler(t.Output(), nil)))
		return err
	}))
	t.Cleanup(w.Close)
	return w
}

// await waits until the changes come to this.
func (w *watched) await(want map[string]string) {
	w.t.Helper()
	diff := ""
	for end := time.After(time.Minute); ; {
		changes, complete := w.Take()
		for _, c := range changes {
			key := fmt.Sprintf("%d %s", c.Table, c.Prefix)
			if w.state[key] = c.Set.String(); c.Set == (rib.Set{}) {
				delete(w.state, key)
			}
		}
		if diff = cmp.Diff(want, w.state); diff == "" && complete {
			return
		}
		select {
		case <-w.Changes():
		case <-end:
			w.t.Fatalf("never as wanted: -want +got:\n%s", diff)
		}
	}
}

// ip runs lines of ip(8) in a namespace.
func ip(t *testing.T, ns *linux.Netns, lines ...string) {
	t.Helper()
	must(t, ns.Do(func() error { return linuxtest.IP(strings.Join(lines, "\n")) }))
}

const seg6 = " encap seg6 mode encap segs "

// A source tells of routes that are there, and of what becomes of them, by whatever means: next
// hops in routes, objects, groups and resilient groups, and links that go down, of which the kernel
// does not tell all.
func TestSource(t *testing.T) {
	ns := newNetns(t)
	ip(t, ns, "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up",
		"-6 route add 2001:db8:80::1 table 10"+seg6+"fcbb:bb00:1:: dev v0",
		"route add 192.0.2.1 table 10"+seg6+"fcbb:bb00:1::,fcbb:bb00:2:: dev lo",
		"-6 nexthop add id 1"+seg6+"fcbb:bb00:1:: dev lo", "-6 nexthop add id 2"+seg6+
			"fcbb:bb00:2:: dev lo", "-6 nexthop add id 3"+seg6+"fcbb:bb00:3:: dev v0",
		"nexthop add id 9 group 1/2,2/3", "nexthop add id 10 group 1/2 type resilient buckets 64",
		"-6 route add 2001:db8:80::2 table 10 nhid 9",
		"-6 route add 2001:db8:80::3 table 12 nhid 10",
		"-6 route add 2001:db8:80::4 table 13 nhid 1")
	w := watch(t, ns, 10, 12)
	const one, two = "fcbb:bb00:1::", "fcbb:bb00:2::"
	w.await(map[string]string{
		"10 2001:db8:80::1/128": one, "10 192.0.2.1/32": one + "," + two,
		"10 2001:db8:80::2/128": one + " " + two + " weight 2 fcbb:bb00:3::",
		"12 2001:db8:80::3/128": one + " " + two,
	})
	ip(t, ns, "-6 route replace 2001:db8:80::1 table 10 nhid 10", "nexthop replace id 9 group 2",
		"route del 192.0.2.1 table 10",
		"-6 route add 2001:db8:80::5 table 12"+seg6+one+" dev v0")
	w.await(map[string]string{
		"10 2001:db8:80::1/128": one + " " + two, "10 2001:db8:80::2/128": two,
		"12 2001:db8:80::3/128": one + " " + two, "12 2001:db8:80::5/128": one,
	})
	ip(t, ns, "nexthop replace id 9 group 2/3", "route add 192.0.2.2 table 12"+seg6+one+" dev v0")
	w.await(map[string]string{
		"10 2001:db8:80::1/128": one + " " + two, "10 2001:db8:80::2/128": two + " fcbb:bb00:3::",
		"12 2001:db8:80::3/128": one + " " + two,
		"12 2001:db8:80::5/128": one, "12 192.0.2.2/32": one,
	})
	ip(t, ns, "link set v0 down")
	w.await(map[string]string{
		"10 2001:db8:80::1/128": one + " " + two, "10 2001:db8:80::2/128": two,
		"12 2001:db8:80::3/128": one + " " + two,
	})
	if w.Resyncs() == 0 {
		t.Error("nothing was read anew when a link went down")
	}
}

// Whatever is done to a table, a source that has followed says what one says that reads it at the
// end.
func TestSourceFollows(t *testing.T) {
	ns := newNetns(t)
	w := watch(t, ns, 10)
	random := rand.New(rand.NewPCG(3, 4))
	ip(t, ns, "link add v0 type veth peer name v1", "link set v0 up",
		"-6 nexthop add id 1"+seg6+"fcbb:bb00:1:: dev lo",
		"-6 nexthop add id 2"+seg6+"fcbb:bb00:2:: dev lo", "nexthop add id 9 group 1/2")
	for range 300 {
		to := fmt.Sprintf("2001:db8:80::%d table 10", random.IntN(4))
		family := "-6 "
		if random.IntN(2) == 0 {
			to, family = fmt.Sprintf("192.0.2.%d table 10", random.IntN(4)), ""
		}
		hop := seg6 + fmt.Sprintf("fcbb:bb00:%d:: dev v0", random.IntN(3)+1)
		if random.IntN(2) == 0 {
			hop = []string{" nhid 9", " nhid 1", " dev v0", " blackhole"}[random.IntN(4)]
			if hop == " blackhole" {
				hop, to = "", "blackhole "+to
			}
		}
		metric := fmt.Sprintf(" metric %d", random.IntN(2)+10)
		line := []string{
			family + "route replace " + to + metric + hop,
			family + "route append " + to + metric + hop, family + "route del " + to + metric,
			fmt.Sprintf("nexthop replace id 9 group %s", []string{"1", "2", "1/2"}[random.IntN(3)]),
		}[random.IntN(4)]
		must(t, ns.Do(func() error { _ = linuxtest.IP(line); return nil })) // some are refused
	}
	fresh := watch(t, ns, 10)
	changes, complete := fresh.Take()
	for !complete {
		<-fresh.Changes()
		more, whole := fresh.Take()
		changes, complete = append(changes, more...), whole
	}
	want := map[string]string{}
	for _, c := range changes {
		want[fmt.Sprintf("%d %s", c.Table, c.Prefix)] = c.Set.String()
	}
	if len(want) == 0 {
		t.Fatal("no route is left: the test shows nothing")
	}
	w.await(want)
}
