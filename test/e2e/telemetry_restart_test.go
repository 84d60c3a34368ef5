package e2e_test

import (
	"testing"
	"time"

	"sextant/config"
)

// counters are those of a node's telemetry, by names.
func (f *telemetryFabric) counters(node string) map[string]uint64 {
	f.t.Helper()
	counters, err := f.agents.client(node).Counters(f.t.Context())
	must(f.t, err)
	all := map[string]uint64{}
	for _, c := range counters {
		if c.Telemetry == nil {
			continue
		}
		for _, one := range c.Telemetry.Packets {
			all[one.Outcome] = one.Packets
		}
		for _, one := range c.Telemetry.Reported {
			all["reported as "+one.Reason] = one.Packets
		}
	}
	return all
}

// Agents of source, transit and sink are killed and start again, by the same file and by others,
// and are told of changes: no connection breaks, no datagram is lost, no counter goes back, and
// what got telemetry has it taken out. The sink takes no flow for a new one that it knew.
func TestTelemetryRestart(t *testing.T) {
	const service = "[2001:db8:a::1]:7"
	f := newTelemetryFabric(t)
	serveEchoAt(t, f.lab, "h1", service)
	f.reconfigure("leaf2", func(n *config.Node) {
		n.Telemetry.Sink.Report = []config.TelemetryReason{config.ReportEach,
			config.ReportNewFlow}
	})
	tr := startTrafficTo(t, f.lab, "h2", service)
	tr.flows("before")
	step := func(what string, do func()) {
		t.Helper()
		before := map[string]map[string]uint64{}
		for node := range f.processes {
			before[node] = f.counters(node)
		}
		do()
		for node := range f.processes {
			after := f.counters(node)
			for name, was := range before[node] {
				if after[name] < was {
					t.Errorf("%s: %s of %s was %d, and is %d", what, name, node, was, after[name])
				}
			}
		}
		tr.flows(what)
	}
	all := func(n *config.Node) { n.Telemetry.Source.OneIn = 1 }
	step("all packets, by apply", func() { f.reconfigure("leaf1", all) })
	known := f.counters("leaf2")["reported as new_flow"]
	if known < connections {
		t.Errorf("%d flows are reported as new, of %d", known, connections)
	}
	step("a restart", func() { f.restart("leaf1", same) })
	step("agents that die", func() { f.dying(5) })
	step("another sink, by apply", func() {
		f.reconfigure("leaf2", func(n *config.Node) { n.Telemetry.Sink.Gap = time.Second })
	})
	step("another node number, by a restart", func() {
		f.restart("leaf1", func(n *config.Node) { n.Telemetry.Node = 3 })
	})
	step("fewer packets, by a restart", func() {
		f.restart("leaf1", func(n *config.Node) { n.Telemetry.Source.OneIn = 3 })
	})
	if now := f.counters("leaf2")["reported as new_flow"]; now > known+2 {
		t.Errorf("%d flows were reported as new, and after restarts %d", known, now)
	}
	if lost := tr.stop(); lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, tr.sent.Load())
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		inserted, pushed, removed := f.counters("leaf1")["inserted"],
			f.counters("spine1")["pushed"], f.counters("leaf2")["removed"]
		if inserted == pushed && pushed == removed && inserted > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("inserted %d, pushed %d, removed %d", inserted, pushed, removed)
		}
	}
}
