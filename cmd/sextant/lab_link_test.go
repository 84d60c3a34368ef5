package main

import (
	"strings"
	"testing"
	"time"

	"sextant/lab"
	"sextant/lab/linkemu"
	"sextant/lab/netem"
)

func TestLinksOfLabsThatAreNotThere(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, line := range []string{
		"lab link list no-such-lab", "lab link set no-such-lab a:eth0 delay 1ms",
		"lab link cut no-such-lab a--b", "lab link restore no-such-lab a--b",
	} {
		out := w.run(strings.Fields(line)...)
		if !strings.Contains(out, `there is no lab "no-such-lab"; `) || !strings.HasSuffix(out,
			"[exit 3]\n") {
			t.Errorf("%s", out)
		}
	}
	if out := w.run("lab", "link", "set", "x", "a:eth0", "delay", "1ms",
		"loss"); !strings.Contains(out, "loss has no value") {
		t.Errorf("%s", out)
	}
	if out := w.run("lab", "up", "x.yaml", "--wire", "netem"); !strings.Contains(out, "netem") ||
		strings.HasSuffix(out, "[exit 0]\n") {
		t.Errorf("%s", out)
	}
}

func TestLinksView(t *testing.T) {
	states := []lab.LinkState{
		{Link: lab.Link{Ends: [2]string{"a:eth0", "b:eth0"}}},
		{Link: lab.Link{Ends: [2]string{"b:eth1", "c:eth0"}, Wire: lab.WireUser},
			Directions: []linkemu.DirectionStatus{
				{From: "b:eth1", To: "c:eth0", Profile: netem.Profile{Delay: 5 * time.Millisecond,
					Loss: 0.1}, TooLong: 1, Unsent: 2, UnderWay: 4,
					Counters:   netem.Counters{Packets: 1000, Lost: 99, Dropped: 3},
					LateMedian: 30400,
					LateP99:    250 * time.Microsecond, LateMost: 1},
				{From: "c:eth0", To: "b:eth1", Profile: netem.Profile{Cut: true}},
			}},
	}
	v := linksView(states)
	rows := v.tables[0].rows
	if got := strings.Join(rows[1],
		" "); got != "b:eth1 c:eth0 user delay 5ms loss 10% 1000 99 3 30.4µs 250µs 0 0 0 4 3" {
		t.Errorf("a direction is shown as %q", got)
	}
	if len(rows) != 3 || rows[0][2] != "-" || rows[2][3] != "cut" {
		t.Errorf("the links are shown as %q", rows)
	}
	if got := strings.Join(v.names, " "); got != "a:eth0--b:eth0 b:eth1 c:eth0" {
		t.Errorf("their names are %q", got)
	}
}
