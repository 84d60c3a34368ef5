package agent_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

const explicit = "  source: fd00:5e::e1\n  buckets: 65537\n"

// asFormerPins makes the pinned tables ones that a version before services were sized by need would
// have left: a map of maps all of one size, and services without theirs.
func (m *machine) asFormerPins() {
	m.t.Helper()
	pin := filepath.Join(m.pins, "edge", "tables")
	tables, err := ebpf.LoadPinnedMap(pin, nil)
	must(m.t, err)
	defer tables.Close()
	inner := &ebpf.MapSpec{
		Name: "chains", Type: ebpf.Array, KeySize: 4, ValueSize: 16,
		MaxEntries: config.FormerBuckets,
		Flags:      unix.BPF_F_MMAPABLE,
	}
	former, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "tables", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, InnerMap: inner,
		MaxEntries: tables.MaxEntries(),
	})
	must(m.t, err)
	defer former.Close()
	for index := range uint32(3) {
		chains := m.chainsOf(index)
		if chains == nil {
			continue
		}
		then, err := ebpf.NewMap(inner)
		must(m.t, err)
		for bucket, c := range chains {
			octets := make([]byte, 0, 16)
			for _, id := range c.IDs {
				octets = binary.BigEndian.AppendUint16(octets, id)
			}
			octets = append(octets, c.Length, c.Candidates)
			octets = binary.BigEndian.AppendUint16(octets, c.Shadow)
			must(m.t, then.Put(uint32(bucket), octets))
		}
		must(m.t, former.Put(index, then))
		must(m.t, then.Close())
	}
	must(m.t, os.Remove(pin))
	must(m.t, former.Pin(pin))
	m.asFormerServices("edge")
	m.asFormerServices("host")
}

// asFormerServices gives the services of a role their former entries, of 8 bytes: number, flags.
func (m *machine) asFormerServices(role string) {
	m.t.Helper()
	pin := filepath.Join(m.pins, role, "services")
	now, err := ebpf.LoadPinnedMap(pin, nil)
	must(m.t, err)
	defer now.Close()
	former, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "services", Type: ebpf.Hash, KeySize: now.KeySize(), ValueSize: 8,
		MaxEntries: now.MaxEntries(),
	})
	must(m.t, err)
	defer former.Close()
	var key, value []byte
	entries := now.Iterate()
	for entries.Next(&key, &value) {
		must(m.t, former.Put(key, append(slices.Clone(value[:4]), 0, 0, 0, 0)))
	}
	must(m.t, entries.Err())
	must(m.t, os.Remove(pin))
	must(m.t, former.Pin(pin))
}

func sameChains(t *testing.T, when string, before, after []pool.Chain) {
	t.Helper()
	if !slices.Equal(before, after) {
		t.Errorf("%s: other chains, %d of them, than the %d previous ones", when, len(after),
			len(before))
	}
}

func (r *running) bucketsOf(service string) int {
	r.t.Helper()
	s, err := r.Services(r.t.Context(), service, api.Edge)
	must(r.t, err)
	return s[0].Edge.Buckets
}

// TestUpgradeKeepsBuckets: from what a version left in which all services had 65,537 buckets, be it
// in the kernel or, after a power failure, on disk, the services go on as they were, and so do
// changes made at run time. The state of such a version has the default written down, and the
// fingerprint of a file that has.
func TestUpgradeKeepsBuckets(t *testing.T) {
	m := newMachine(t)
	r := m.start(strings.Replace(exactText, "  source: fd00:5e::e1\n", explicit, 1))
	drain(r, "web1", config.Draining)
	before := m.chainsOf(1)
	if len(before) != config.FormerBuckets {
		t.Fatalf("%d chains", len(before))
	}
	r.stop()
	m.asFormerPins()

	r = m.start(exactText)
	sameChains(t, "after the upgrade", before, m.chainsOf(1))
	if got := r.bucketsOf("web"); got != config.FormerBuckets {
		t.Errorf("web has %d buckets", got)
	}
	text, err := r.Config(t.Context(), true)
	must(t, err)
	node, err := config.Parse("running.yaml", text)
	must(t, err)
	if node.Edge.Buckets != 0 {
		t.Errorf("the node file is taken to ask for %d buckets", node.Edge.Buckets)
	}
	if got := node.Edge.Services[0].Backends[0].State; got != config.Draining {
		t.Errorf("web1, which was drained at run time, is %s", got)
	}
	vip, port := node.Edge.Services[0].VIP, uint16(8080)
	spec := api.ServiceSpec{VIP: &vip, Port: &port}
	_, err = r.PutService(t.Context(), api.Create, "new", api.Edge, spec)
	must(t, err)
	if got := r.bucketsOf("new"); got != config.DefaultBuckets {
		t.Errorf("a new service has %d buckets", got)
	}
	r.stop()

	must(t, m.unload())
	r = m.start(exactText)
	sameChains(t, "after a power failure", before, m.chainsOf(1))
	r.stop()
}

// What the node file declares holds, whatever was before.
func TestDeclaredBuckets(t *testing.T) {
	m := newMachine(t)
	r := m.start(exactText)
	r.stop()
	text := strings.Replace(exactText, "      candidates: 1\n",
		"      candidates: 1\n      maxBackends: 20\n", 1)
	r = m.start(text)
	if got := r.bucketsOf("web"); got != 2003 {
		t.Errorf("sized for 20 backends it has %d buckets", got)
	}
	if chains := m.chainsOf(1); len(chains) != 2003 {
		t.Errorf("%d chains", len(chains))
	}
	_, err := r.apply(m.text(strings.Replace(text, "maxBackends: 20", "maxBackends: 100", 1)),
		false)
	must(t, err)
	if got := r.bucketsOf("web"); got != 10007 {
		t.Errorf("sized for 100 backends it has %d buckets", got)
	}
	if chains := m.chainsOf(1); len(chains) != 10007 {
		t.Errorf("%d chains", len(chains))
	}
	r.stop()
}

// An edge whose node file does not say has as many buckets as most of its peers have.
func TestPeersTellTheBuckets(t *testing.T) {
	for name, test := range map[string]struct {
		peers []int
		want  int
	}{
		"one peer":               {[]int{4099}, 4099},
		"most":                   {[]int{1021, 4099, 4099}, 4099},
		"a tie with the default": {[]int{4099, config.DefaultBuckets}, config.DefaultBuckets},
		"a tie without it":       {[]int{4099, 1021}, 4099},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var peers []string
			for _, buckets := range test.peers {
				peers = append(peers, fmt.Sprintf("%q", peer(t, clusterSigning(t), buckets)))
			}
			r := m.start(strings.Replace(exactText, "  source: fd00:5e::e1\n",
				"  source: fd00:5e::e1\n  peers: ["+strings.Join(peers, ", ")+"]\n", 1))
			defer r.stop()
			if got := r.bucketsOf("web"); got != test.want {
				t.Errorf("%d buckets, want %d", got, test.want)
			}
			if got := r.bucketsOf("dns"); got != config.DefaultBuckets {
				t.Errorf("of a service that no peer has: %d buckets", got)
			}
		})
	}
}

// chainsOf a service of the edge are those in the kernel.
func (m *machine) chainsOf(index uint32) []pool.Chain {
	m.t.Helper()
	chains, err := datapath.PinnedChains(filepath.Join(m.pins, "edge"), index)
	must(m.t, err)
	return chains
}
