package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux/facts"
)

const telemetryText = `
node: leaf1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
telemetry:
  node: 1
  transit: [eth0]
  source: {interfaces: [eth1]}
  sink: {interfaces: [eth0], sids: ["fcbb:bb00:1::/48"], collector: "[fd00:5e::9]:32766"}
`

func TestTelemetry(t *testing.T) {
	for _, test := range []struct {
		name string
		with func(*facts.Facts)
		want []string
	}{
		{"nothing is wrong", func(f *facts.Facts) {
			f.Running.Telemetry = map[string]uint64{"inserted": 9, "removed": 7, "pushed": 5,
				"carries": 1, "flow_limit": 1}
		}, nil},
		{"a role that runs and an agent that does not tell", func(*facts.Facts) {}, nil},
		{"queues that no program reads", func(f *facts.Facts) {
			f.Interfaces["eth0"] = with(device(), "mq")
			f.Interfaces["eth1"] = with(device(), "pfifo_fast")
		}, []string{"risk telemetry_queue eth0", "risk telemetry_queue eth1"}},
		{"an interface that is not there", func(f *facts.Facts) {
			delete(f.Interfaces, "eth1")
		}, []string{"broken interface_missing eth1"}},
		{"no room for eight nodes, to the byte", func(f *facts.Facts) {
			eth1 := with(device(), "noqueue")
			eth1.MTU = 1500 + 24 + 8*2*4 - 1
			f.Interfaces["eth1"] = eth1
		}, []string{"notable telemetry_room eth1"}},
		{"just room", func(f *facts.Facts) {
			eth1 := with(device(), "noqueue")
			eth1.MTU = 1500 + 24 + 8*2*4
			f.Interfaces["eth1"] = eth1
		}, nil},
		{"nothing has come", func(f *facts.Facts) { f.Running.Telemetry = map[string]uint64{} },
			[]string{"notable telemetry_source_silent eth1",
				"notable telemetry_sink_silent eth0"}},
		{"packets and reports that are left out", func(f *facts.Facts) {
			f.Running.LostReports = 1
			f.Running.Telemetry = map[string]uint64{"inserted": 1, "removed": 1, "mtu": 2,
				"segmented": 3, "hops": 4, "outside": 5, "broken": 6, "lost": 7, "limit": 8}
		}, []string{"risk telemetry_mtu telemetry", "risk telemetry_segmented telemetry",
			"risk telemetry_hops telemetry", "risk telemetry_outside telemetry",
			"risk telemetry_broken telemetry", "risk telemetry_lost telemetry",
			"risk telemetry_limit telemetry", "risk telemetry_unsent telemetry"}},
	} {
		f := facts.Facts{Kernel: facts.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
			Interfaces: map[string]facts.Interface{"eth0": with(device(), "fq"),
				"eth1": with(device(), "noqueue")},
			Running: &facts.Running{Node: "leaf1", Version: "v1"}}
		test.with(&f)
		got := diagnosed(t, parseText(t, telemetryText), f)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func with(i facts.Interface, qdisc string) facts.Interface {
	i.Qdisc = qdisc
	return i
}
