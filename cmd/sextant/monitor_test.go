package main

import (
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
)

// A line of role telemetry says what became of packets and why some were reported; counters that
// did not rise are not named.
func TestMonitorTelemetry(t *testing.T) {
	at := func(inserted, mtu, gap uint64) api.Counters {
		return api.Counters{Role: "telemetry", Telemetry: &api.TelemetryCounters{
			Packets: []api.TelemetryPackets{{Outcome: "inserted", Packets: inserted},
				{Outcome: "mtu", Packets: mtu}},
			Reported: []api.TelemetryReports{{Reason: "gap", Packets: gap}}}}
	}
	line := monitorText(time.Unix(0, 0), at(5, 2, 7), at(25, 2, 8), time.Second)
	if !strings.HasSuffix(line, "  inserted 20, reported gap 1\n") {
		t.Errorf("the line %q", line)
	}
	line = monitorText(time.Unix(0, 0), at(5, 2, 7), at(5, 2, 7), time.Second)
	if !strings.HasSuffix(line, "  -\n") {
		t.Errorf("without a change, the line %q", line)
	}
}
