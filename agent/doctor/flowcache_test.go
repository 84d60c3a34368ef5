package doctor_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/doctor"
	"sextant/linux/facts"
)

// learningText is the node with both roles, whose edge has a flow cache and whose host tells edges
// what it takes.
var learningText = strings.NewReplacer(
	"source: fd00:5e::e1\n", "source: fd00:5e::e1\n  flowCache: {sid: \"fd00:5e:0:1ea::1\"}\n",
	"host:\n", "host:\n  source: fd00:5e::e1\n  learners: [\"fd00:5e:0:1ea::/64\"]\n",
).Replace(nodeText)

func TestDiagnoseFlowCache(t *testing.T) {
	const sid = "fd00:5e:0:1ea::1"
	vip := netip.MustParseAddr("192.0.2.80")
	answered := func(p facts.Passage) func(*facts.Facts) {
		return func(f *facts.Facts) {
			f.Answers = []facts.Answer{{Interface: "eth1", VIP: vip,
				Client: netip.MustParseAddr("203.0.113.1"), Passage: p}}
		}
	}
	events := func(counts map[string]uint64) func(*facts.Facts) {
		return func(f *facts.Facts) { f.Running.FlowCache = counts }
	}
	told := func(l facts.Learning) func(*facts.Facts) {
		return func(f *facts.Facts) { f.Running.Learning = l }
	}
	for _, test := range []struct {
		name string
		text string
		edit func(*facts.Facts)
		want []string
	}{
		{"healthy", "", func(*facts.Facts) {}, nil},
		{"SYN-ACKs go on", "", answered(facts.Passage{Fate: facts.Forwarded, Interface: "eth0"}),
			nil},
		{"SYN-ACKs are not forwarded", "", answered(facts.Passage{Fate: facts.NotForwarding,
			Off: "net.ipv4.conf.eth1.forwarding"}), []string{"broken sysctl_forwarding eth1"}},
		{"reverse path of SYN-ACKs", "", answered(facts.Passage{Fate: facts.ReversePath}),
			[]string{"broken rp_filter eth1"}},
		{"no route to clients", "", answered(facts.Passage{Fate: facts.NoRoute}),
			[]string{"notable client_route 192.0.2.80"}},
		{"SYN-ACKs are refused", "", answered(facts.Passage{Fate: facts.Refused}),
			[]string{"risk client_route 192.0.2.80"}},
		{"host without learners", strings.Replace(learningText, `fd00:5e:0:1ea::/64`,
			`fd00:5e:0:1eb::/64`, 1), func(*facts.Facts) {},
			[]string{"risk learner_missing " + sid}},
		{"no cache", nodeText, events(map[string]uint64{"miss": 100}), nil},
		{"no SYN-ACK comes", "", events(map[string]uint64{"miss": 60, "stale": 40}),
			[]string{"risk cache_silent " + sid}},
		{"no SYN-ACK has come yet", "", events(map[string]uint64{"miss": 99}), nil},
		{"strangers", "", events(map[string]uint64{"refused_stranger": 80, "refused_unnamed": 20,
			"stored": 99, "hit": 1000}), []string{"risk cache_refuses " + sid}},
		{"a few strangers", "", events(map[string]uint64{"refused_stranger": 100, "stored": 100,
			"hit": 1000}), nil},
		{"more misses than hits", "", events(map[string]uint64{"miss": 101, "hit": 100,
			"stored": 1}), []string{"notable cache_misses " + sid}},
		{"a cache that works", "", events(map[string]uint64{"miss": 100, "hit": 100, "stored": 1}),
			nil},
		{"no route to the edge", "", told(facts.Learning{Opened: 3, NotRouted: 1, ByEdge: 2}),
			[]string{"risk learner_unrouted host.learners"}},
		{"nobody asks", "", told(facts.Learning{Opened: 100}),
			[]string{"notable learner_silent host.learners"}},
		{"nobody has asked yet", "", told(facts.Learning{Opened: 99}), nil},
		{"no learners", nodeText, told(facts.Learning{Opened: 100}), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := healthy()
			test.edit(&facts)
			text := test.text
			if text == "" {
				text = learningText
			}
			if diff := cmp.Diff(test.want, diagnosed(t, parseText(t, text), facts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What mends an interface whose name has a dot, as that of a VLAN, is a command that sysctl(8)
// understands.
func TestMendsOfInterfaceWithDot(t *testing.T) {
	known := healthy()
	known.Answers = []facts.Answer{{
		Interface: "eth1.100", VIP: netip.MustParseAddr("192.0.2.80"),
		Passage: facts.Passage{Fate: facts.ReversePath},
	}}
	const want = "sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth1/100.rp_filter=0"
	found := doctor.Diagnose(parseText(t, learningText), known, "v1")
	if len(found) != 1 || found[0].Mend != want {
		t.Errorf("found %+v, want one with the mend %q", found, want)
	}
}
