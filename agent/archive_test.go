package agent_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/agent/archive"
	"sextant/agent/archive/archivetest"
	"sextant/agent/signing"
	"sextant/config"
	"sextant/packet/flow"
)

// withEtcd is exactText with an etcd, given as in the file.
func withEtcd(etcd string) string {
	return strings.Replace(exactText, "  source: fd00:5e::e1\n",
		"  source: fd00:5e::e1\n  etcd: "+etcd+"\n", 1)
}

// eventually waits for something that another process or goroutine does.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after two minutes: not %s", what)
		}
	}
}

const webEndpoint = "[2001:db8:80::80]:80/tcp"

// written are the records of the web service.
func written(t testing.TB, server *archivetest.Server) []archive.Record {
	t.Helper()
	a := archive.New(server.Etcd())
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	records, err := a.Records(ctx, webEndpoint)
	must(t, err)
	return records
}

// changed is whether the last record is another one than the previous one.
func changed(t testing.TB, server *archivetest.Server, before []archive.Record) bool {
	t.Helper()
	now := written(t, server)
	return len(now) == 1 && (len(before) == 0 || string(before[0].Data) != string(now[0].Data))
}

// archived waits until etcd has what the agent has, and answered last when asked.
func (r *running) archived(server *archivetest.Server, before []archive.Record) []archive.Record {
	r.t.Helper()
	eventually(r.t, "written", func() bool { return changed(r.t, server, before) })
	return written(r.t, server)
}

// An edge on a new machine, none of whose peers run, finds in etcd who had the buckets. Without the
// cluster's secret, or with another number of buckets, what is in etcd is not believed.
func TestEtcdTellsThePast(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	m := newMachine(t)
	r := m.start(withEtcd(server.Text()))
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	second := r.archived(server, first)
	drain(r, "web2", config.Up)
	r.archived(server, second)
	before := strings.Join(r.who(), "\n")
	r.stop()
	for name, test := range map[string]struct {
		old, new string
		finds    bool
	}{
		"edge2": {"", "", true},
		"with another secret": {"secret: 00112233445566778899aabbccddeeff",
			"secret: ff112233445566778899aabbccddeeff", false},
		"with another flow hash": {"node: with", "flowHash: siphash\nnode: with", false},
		"with other buckets": {"  source: fd00:5e::e1\n",
			"  source: fd00:5e::e1\n  buckets: 1021\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			text := strings.Replace(withEtcd(server.Text()), "node: both1",
				"node: "+strings.ReplaceAll(name, " ", "-"), 1)
			r := m.start(strings.Replace(text, test.old, test.new, 1))
			now := strings.Join(r.who(), "\n")
			if test.finds && now != before {
				t.Errorf("flows are offered to\n%s\nand were to\n%s", now, before)
			}
			if !test.finds && strings.Contains(now, " ") {
				t.Errorf("the past of a stranger was believed:\n%s", now)
			}
			r.stop()
		})
	}
}

// What was signed for one service, or by one node, is not believed elsewhere, nor what is not
// whole.
func TestEtcdRecordsStayWhereTheyWere(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	m := newMachine(t)
	r := m.start(withEtcd(server.Text()))
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	moved := r.archived(server, first)[0].Data
	r.stop()
	hand := archive.New(server.Etcd())
	defer hand.Close()
	for name, data := range map[string][]byte{"edge3": moved, "edge4": moved[:len(moved)-1],
		"edge5": moved[:10], "edge6": nil} {
		must(t, hand.Put(t.Context(), webEndpoint, name, data))
	}
	must(t, hand.Delete(t.Context(), webEndpoint, "both1"))
	m = newMachine(t)
	r = m.start(strings.Replace(withEtcd(server.Text()), "node: both1", "node: edge2", 1))
	if now := strings.Join(r.who(), "\n"); strings.Contains(now, " ") {
		t.Errorf("a record that was changed or moved was believed:\n%s", now)
	}
	r.stop()
}

// An edge starts and works without its etcd, says so, and writes as soon as it is there.
func TestEtcdOutOfReach(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	server.Kill()
	m := newMachine(t)
	r := m.start(withEtcd(server.Text()))
	drain(r, "web2", config.Draining)
	warned := func() bool {
		s, err := r.Status(t.Context())
		must(t, err)
		return strings.Contains(strings.Join(s.Warnings, "\n"), "chains are not kept in etcd")
	}
	if !warned() || r.metric("sextant_etcd_failures_total") == "0" ||
		r.metric("sextant_etcd_last_success_timestamp_seconds") != "0" {
		t.Errorf("warned %v, metrics:\n%s", warned(), r.metrics())
	}
	server.Restart()
	first := r.archived(server, nil)
	eventually(t, "without a warning", func() bool { return !warned() })
	if r.metric("sextant_etcd_last_success_timestamp_seconds") == "0" {
		t.Error("there is no time of success")
	}
	server.Kill()
	drain(r, "web2", config.Up) // does not wait for etcd
	eventually(t, "a warning", warned)
	server.Restart()
	second := r.archived(server, first)
	_, err := r.DeleteService(t.Context(), "web", api.Edge)
	must(t, err)
	eventually(t, "removed", func() bool { return len(written(t, server)) == 0 })
	if len(second) != 1 || second[0].Node != "both1" {
		t.Errorf("records were of %d nodes", len(second))
	}
	r.stop()
}

// What a stopping edge has not yet written is written before it ends.
func TestEtcdHasTheLastChange(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	m := newMachine(t)
	r := m.start(withEtcd(server.Text()))
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	r.stop()
	if !changed(t, server, first) {
		t.Error("the last change is not in etcd")
	}
}

// Records above etcd's limit of a request come through.
func TestEtcdKeepsBigRecords(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	text := strings.Replace(withEtcd(server.Text()), "  source: fd00:5e::e1\n",
		"  source: fd00:5e::e1\n  buckets: 1048576\n", 1)
	r := newMachine(t).start(text)
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	second := r.archived(server, first)
	drain(r, "web2", config.Up)
	if n := len(r.archived(server, second)[0].Data); n <= 1<<20 {
		t.Errorf("the record has %d bytes, which is one chunk", n)
	}
	before := strings.Join(r.who(), "\n")
	r.stop()
	r = newMachine(t).start(strings.Replace(text, "node: both1", "node: edge2", 1))
	if now := strings.Join(r.who(), "\n"); now != before || !strings.Contains(now, " ") {
		t.Errorf("flows are offered to\n%s\nand were to\n%s", now, before)
	}
	r.stop()
}

// Which etcd keeps the chains changes with a restart only.
func TestEtcdIsFixedWhileTheAgentRuns(t *testing.T) {
	m := newMachine(t)
	r := m.start(exactText)
	_, err := r.apply(m.text(withEtcd("{endpoints: [\"http://127.0.0.1:1\"]}")), false)
	if err == nil || !strings.Contains(err.Error(),
		"edge.etcd can't change from none to http://127.0.0.1:1, prefix /sextant") {
		t.Errorf("apply: %v", err)
	}
	r.stop()
}

// An older record that somebody writes once more stays older: what it says of a bucket comes behind
// what newer records say.
func TestEtcdRecordsCountByTheirAge(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	hand := archive.New(server.Etcd())
	defer hand.Close()
	put := func(node string, at time.Time, owner uint16) {
		must(t, hand.Put(t.Context(), webEndpoint, node, sealed(t, node, at, owner)))
	}
	put("edge8", time.Now(), 2)
	put("edge9", time.Now().Add(-time.Hour), 3) // etcd has it as the newest
	r := newMachine(t).start(withEtcd(server.Text()))
	defer r.stop()
	both := 0
	for i, chain := range r.who() {
		newer, older := strings.Index(chain, "web2"), strings.Index(chain, " web3")
		if newer >= 0 && older >= 0 {
			both++
		}
		if older >= 0 && older < newer {
			t.Fatalf("flow %d is offered to %q: the older record came first", i, chain)
		}
	}
	if both == 0 {
		t.Fatal("no flow has its owners of both records")
	}
}

// sealed is the record of a node at which one backend had each bucket of the web service.
func sealed(t *testing.T, node string, at time.Time, owner uint16) []byte {
	t.Helper()
	secret := flow.Secret(clusterSigning(t))
	chains := recordOf(t, 65537, owner)
	return signing.Record{
		Endpoint: webEndpoint, Node: node, At: at, Chains: []byte(chains),
	}.Seal(secret)
}

// What etcd loses, or another hand changes, is written again by the edge that wrote it.
func TestEtcdIsFilledAgain(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	r := newMachine(t).start(withEtcd(server.Text()))
	defer r.stop()
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	second := r.archived(server, first)
	hand := archive.New(server.Etcd())
	defer hand.Close()
	for name, spoil := range map[string]func() error{
		"emptied": func() error { return hand.Delete(t.Context(), webEndpoint, "both1") },
		"an older record": func() error {
			return hand.Put(t.Context(), webEndpoint, "both1", first[0].Data)
		},
	} {
		must(t, spoil())
		eventually(t, "filled again after: "+name, func() bool {
			now := written(t, server)
			return len(now) == 1 && bytes.Equal(chainsIn(t, now[0]), chainsIn(t, second[0]))
		})
	}
	if got := r.metric("sextant_etcd_restored_records_total"); got != "2" {
		t.Errorf("%s records were restored, want 2", got)
	}
}

// chainsIn are the chains in a record of the web service.
func chainsIn(t *testing.T, r archive.Record) []byte {
	t.Helper()
	secret := flow.Secret(clusterSigning(t))
	record, err := signing.Open(secret, webEndpoint, r.Node, r.Data, 1<<20)
	must(t, err)
	return record.Chains
}

// An edge and its etcd start together, the edge first: it takes in what etcd has as soon as it can,
// and before it writes in its place.
func TestEtcdTellsThePastLate(t *testing.T) {
	server := archivetest.Start(t, config.Etcd{})
	m := newMachine(t)
	r := m.start(withEtcd(server.Text()))
	first := r.archived(server, nil)
	drain(r, "web2", config.Draining)
	second := r.archived(server, first)
	drain(r, "web2", config.Up)
	r.archived(server, second)
	before := owners(r.who())
	r.stop()
	server.Kill()
	r = newMachine(t).start(withEtcd(server.Text())) // the same node, on another machine
	defer r.stop()
	if strings.Contains(strings.Join(r.who(), "\n"), " ") {
		t.Fatal("the past is known before anybody told it")
	}
	server.Restart()
	eventually(t, "told", func() bool { return slices.Equal(owners(r.who()), before) })
}

// owners sorts the backends of each chain: which is a candidate differs between edges without a
// common past.
func owners(chains []string) (sorted []string) {
	for _, c := range chains {
		names := strings.Fields(c)
		slices.Sort(names)
		sorted = append(sorted, strings.Join(names, " "))
	}
	return sorted
}
