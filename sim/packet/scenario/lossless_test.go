package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const pausing = `
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 3}
links: {rate: 1Gbps, delay: 2us}
queue: {lossless: {xoff: 6}}
traffic: {pattern: random, sizes: 200000, load: 0.6}
duration: 60ms
`

// Lossless queues lose nothing and tell of their pauses; queues that drop have none.
func TestLossless(t *testing.T) {
	r := run(t, pausing, "ecmp", 1)
	dropping := run(t, strings.Replace(pausing, "lossless: {xoff: 6}", "packets: 6", 1), "ecmp", 1)
	if r.Drops != 0 || r.Pauses == 0 || r.PausedMs <= 0 || r.Victims == 0 || r.VictimFlows == 0 ||
		r.Deadlock != nil {
		t.Errorf("%d drops, %d pauses of %g ms, %d packets of %d flows delayed, deadlock %v",
			r.Drops, r.Pauses, r.PausedMs, r.Victims, r.VictimFlows, r.Deadlock)
	}
	if dropping.Drops == 0 || dropping.Pauses != 0 || dropping.VictimFlows != 0 {
		t.Errorf("where queues drop: %d drops, %d pauses", dropping.Drops, dropping.Pauses)
	}
	sum, paused := uint64(0), 0.0
	for _, l := range r.Links {
		sum += l.Pauses
		paused += l.Paused.Seconds() * 1000
		if l.Paused.Seconds() > 0.06 || l.Peak > 12*fullPacket {
			t.Errorf("%+v", l)
		}
	}
	if sum != r.Pauses || paused < r.PausedMs*0.999 || paused > r.PausedMs*1.001 {
		t.Errorf("links have %d pauses of %g ms, all have %d of %g ms", sum, paused, r.Pauses,
			r.PausedMs)
	}
}

// A headroom that is too small loses packets.
func TestLosslessHeadroom(t *testing.T) {
	r := run(t, strings.Replace(pausing, "xoff: 6", "xoff: 6, headroom: 0", 1), "ecmp", 1)
	if r.Drops == 0 {
		t.Errorf("no drops without headroom, %d pauses", r.Pauses)
	}
}

// A deadlock is found, and named.
func TestLosslessDeadlock(t *testing.T) {
	text := "topology: {kind: file, file: ring}\nqueue: {lossless: {xoff: 10}}\n" +
		"links: {rate: 1Gbps, delay: 1us}\nduration: 50ms\n" +
		"traffic: {pattern: random, sizes: 1000, load: 0.001, constant: ["
	for i := range 5 {
		text += fmt.Sprintf("{from: host%d, to: host%d, rate: 1Gbps}, ", i, (i+2)%5)
	}
	c, err := Parse([]byte(text+"]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(ring(t, 5), "ecmp", 1, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Deadlock; d == nil || d.Ms > 50 || len(d.Links) < 5 ||
		!strings.Contains(d.String(), "ring0 to ring1") {
		t.Errorf("%v", d)
	}
}

// Settings that cannot hold are refused, with what to do.
func TestLosslessRefused(t *testing.T) {
	for change, want := range map[string]string{
		"lossless: {}":                      "for instance 40",
		"lossless: {xoff: 6, xon: 6}":       "queue.lossless.xon",
		"lossless: {xoff: 6, xon: -1}":      "queue.lossless.xon",
		"lossless: {xoff: 6, headroom: -2}": "leave it out",
		"packets: 9, lossless: {xoff: 6}":   "take those out",
		"random: 9, lossless: {xoff: 6}":    "take those out",
	} {
		_, err := Parse([]byte(strings.Replace(pausing, "lossless: {xoff: 6}", change, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	if _, err := Parse([]byte(pausing+"mode: flow\n"), nil); err == nil ||
		!strings.Contains(err.Error(), "queue.lossless") {
		t.Errorf("in flow mode: %v", err)
	}
}

func TestLosslessExample(t *testing.T) {
	text, err := os.ReadFile("../../../examples/sim/lossless.yaml")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.Replace(string(text), "50ms", "3ms", 1)
	if r := run(t, short, "ecmp", 1); r.Drops != 0 || r.Pauses == 0 || r.Flows == 0 {
		t.Errorf("%d flows, %d drops, %d pauses", r.Flows, r.Drops, r.Pauses)
	}
}
