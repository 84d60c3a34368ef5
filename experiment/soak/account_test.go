package soak

import (
	"strings"
	"testing"
)

const metricsText = `# HELP sextant_packets_total Packets that were not dropped, by what became of them.
sextant_packets_total{outcome="passed",role="edge"} 5
sextant_packets_total{outcome="transmitted",role="edge"} 1.5e+06
sextant_packets_total{outcome="taken",role="host"} 7
sextant_service_packets_total{role="edge",service="web"} 99
sextant_drops_total{reason="truncated",role="edge"} 3
sextant_drops_total{reason="ecn",role="host"} 11
sextant_flow_cache_packets_total{event="hit"} 8
`

func TestReadMetrics(t *testing.T) {
	a, err := readMetrics([]byte(metricsText), "edge")
	if err != nil || a.counted() != 1_500_008 || a.dropped() != 3 ||
		a.Outcomes["transmitted"] != 1_500_000 || a.Drops["truncated"] != 3 ||
		a.Cache["hit"] != 8 {
		t.Errorf("read %+v, %v", a, err)
	}
	host, err := readMetrics([]byte(metricsText), "host")
	if err != nil || host.counted() != 18 || host.Drops["ecn"] != 11 {
		t.Errorf("read %+v, %v", host, err)
	}
	for _, wrong := range []string{"", "sextant_packets_total{outcome=\"passed\",role=\"edge\"} " +
		"5\n", strings.ReplaceAll(metricsText, " 3\n", " three\n")} {
		if a, err := readMetrics([]byte(wrong), "edge"); err == nil {
			t.Errorf("read %+v from %q, want an error", a, wrong)
		}
	}
}

func TestAccountMinus(t *testing.T) {
	now, err := readMetrics([]byte(metricsText), "edge")
	if err != nil {
		t.Fatal(err)
	}
	now.In = 1_500_010
	before := account{In: 4, Outcomes: map[string]uint64{"passed": 2},
		Drops: map[string]uint64{"truncated": 1}, Cache: map[string]uint64{"hit": 2}}
	if d := now.minus(before); d.In != 1_500_006 || d.counted() != 1_500_005 ||
		d.all()["dropped: truncated"] != 2 || d.all()["passed"] != 3 ||
		d.all()["flow cache: hit"] != 6 {
		t.Errorf("difference %+v", d)
	}
}
