package lab_test

import (
	"slices"
	"testing"
	"time"

	"sextant/lab"
	"sextant/lab/netem"
)

const manyLinks = `
name: x
topology:
  nodes:
    a: {}
    b: {}
    edge: {sextant: {node: edge, api: {socket: "{dir}/s"}, edge: {interfaces: [{name: e0}]}}}
  links:
    - {endpoints: ["a:e0", "b:e0"]}
    - {endpoints: ["a:e1", "b:e1"], rate: 10mbit}
    - {endpoints: ["a:e2", "b:e2"], delay: 10ms, rate: 10mbit}
    - {endpoints: ["a:e3", "b:e3"], back: {loss: 1%}}
    - {endpoints: ["a:e4", "b:e4"], loss: 1%, lossBurst: 2}
    - {endpoints: ["a:e5", "edge:e0"], delay: 10ms}
    - {endpoints: ["a:e6", "b:e6"], wire: user}
    - {endpoints: ["a:e7", "b:e7"], wire: auto}
`

// A link without impairments is a plain one; netem is used where it is there, can do it, and is not
// bypassed by XDP.
func TestChooseWires(t *testing.T) {
	const none, kernel, user = lab.WireKind(""), lab.WireKernel, lab.WireUser
	for _, c := range []struct {
		name       string
		preference lab.WireKind
		netem      bool
		want       []lab.WireKind
	}{
		{"with netem", lab.WireAuto, true, []lab.WireKind{none, none, kernel, kernel, user, user,
			user, kernel}},
		{"without netem", "", false, []lab.WireKind{none, none, user, user, user, user, user,
			user}},
		{"user is wanted", user, true, []lab.WireKind{none, none, user, user, user, user, user,
			user}},
	} {
		got, err := lab.ChosenWires(parse(t, "x", manyLinks), c.preference, c.netem)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	_, err := lab.ChosenWires(parse(t, "x", manyLinks), kernel, true)
	wantError(t, err, nil, "a:e4 - b:e4", "netem has no lossBurst", "wire: user")
	_, err = lab.ChosenWires(parse(t, "x", manyLinks), kernel, false)
	wantError(t, err, nil, "a:e2 - b:e2", "this kernel has no netem", "wire: user")
}

// What is read back from netem is what was set, but for the queue, which netem counts with what is
// under way.
func TestNetem(t *testing.T) {
	p := netem.Profile{
		Delay: 20 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.1, Duplicate: 0.02,
		Reorder: 0.03, RateBits: 100_000_000, QueuePackets: 50,
	}
	q, back := lab.Netem(p)
	// 100 Mbit/s for 21 ms are 173.4 packets of 1,514 bytes.
	if q.Limit != 224 || q.Rate64 != 12_500_000 {
		t.Errorf("limit %d and rate %d, want 224 and 12500000", q.Limit, q.Rate64)
	}
	p.QueuePackets = 0
	if back != p {
		t.Errorf("read back %s, want %s", back, p)
	}
	if _, back := lab.Netem(netem.Profile{Cut: true}); !back.Cut {
		t.Errorf("a cut is read back as %s", back)
	}
}

// Both directions have what the link has, and then their own; the queue is that of the rate.
func TestLinkDirections(t *testing.T) {
	spec := parse(t, "x", `
name: x
topology:
  nodes: {a: {}, b: {}}
  links:
    - {endpoints: ["a:e0", "b:e0"], delay: 10ms, jitter: 1ms, loss: 2.5%, lossBurst: 3, duplicate: 1%, reorder: 2%, rate: 100Mbit, queue: 20ms,
       seed: 9, weight: 7, forward: {delay: 20ms, queue: 5 packets}, back: {rate: 1mbit, weight: 8}}
`)
	both := netem.Profile{Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.025,
		LossBurst: 3, Duplicate: 0.01, Reorder: 0.02}
	forward, back := both, both
	forward.Delay, forward.QueuePackets = 20*time.Millisecond, 5
	back.RateBits = 1_000_000
	got := spec.Links[0]
	if got.Impair != [2]netem.Profile{forward, back} {
		t.Errorf("the directions are %v, want %v and %v", got.Impair, forward, back)
	}
	if got.RateBits != 100_000_000 || got.Latency != 20*time.Millisecond || got.Seed != 9 ||
		got.Weights != [2]uint32{7, 8} {
		t.Errorf("the link has rate %d, latency %s, seed %d, weights %v", got.RateBits, got.Latency,
			got.Seed, got.Weights)
	}
}
