package edge

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/config"
	"sextant/lb/pool"
)

// journalTest is a journal that is closed and opened again for each look.
type journalTest struct {
	*testing.T
	dir string
	log bytes.Buffer
}

func (j *journalTest) open() *journal {
	return OpenJournal(j.dir, "e", slog.New(slog.NewTextHandler(&j.log, nil)))
}

// keep hands chains of services to a journal, and waits until they are on the disk.
func (j *journalTest) keep(chains map[config.Endpoint]*pool.Generation) {
	j.Helper()
	k := j.open()
	k.write(chains)
	k.Close()
	if w := k.warning(); w != "" {
		j.Error(w)
	}
}

// want checks what a journal says of a service, nil: nothing, and which files there are.
func (j *journalTest) want(e config.Endpoint, g *pool.Generation, files ...string) {
	j.Helper()
	k := j.open()
	defer k.Close()
	var want []pool.Chain
	if g != nil {
		want = g.AllChains()
	}
	got := k.read(e)
	if !slices.Equal(got.chains, want) {
		j.Errorf("%d chains, not the %d that were kept", len(got.chains), len(want))
	}
	if since := time.Since(got.at); g != nil && (since < 0 || since > time.Minute) {
		j.Errorf("chains of %v", got.at)
	}
	var is []string
	entries, _ := os.ReadDir(filepath.Join(j.dir, "e.chains"))
	for _, entry := range entries {
		is = append(is, entry.Name())
	}
	if !slices.Equal(is, files) {
		j.Errorf("files %q, want %q", is, files)
	}
}

func backends(n int) (list []pool.Backend) {
	for i := range n {
		list = append(list, pool.Backend{ID: uint16(1 + i), Weight: 1})
	}
	return list
}

func endpointOf(i int) config.Endpoint {
	return config.Endpoint{VIP: netip.MustParseAddr("192.0.2.1"), Protocol: config.TCP,
		Port: uint16(1 + i)}
}

var ruledSpec = pool.Spec{Buckets: 251, Seed: 7, Candidates: 2, Depth: 4}

// TestJournalOfRules: services whose chains never changed are in one file; one that changes gets a
// file of its own, which counts, and loses it when it starts again or ends.
func TestJournalOfRules(t *testing.T) {
	j := &journalTest{T: t, dir: t.TempDir()}
	g, err := pool.New(ruledSpec, backends(5), 0)
	must(t, err)
	all := map[config.Endpoint]*pool.Generation{}
	for i := range 100 {
		all[endpointOf(i)] = g
	}
	e := endpointOf(42)
	j.want(e, nil)
	j.keep(all)
	j.want(e, g, rulesName)
	changed, err := g.Next(backends(4), time.Second)
	must(t, err)
	own := filepath.Base((&journal{}).path(e))
	j.keep(map[config.Endpoint]*pool.Generation{e: changed})
	j.want(e, changed, own, rulesName)
	j.want(endpointOf(41), g, own, rulesName)
	anew, err := pool.New(ruledSpec, backends(4), 0)
	must(t, err)
	j.keep(map[config.Endpoint]*pool.Generation{e: anew})
	j.want(e, anew, rulesName)
	j.keep(map[config.Endpoint]*pool.Generation{e: nil, endpointOf(41): changed})
	j.want(e, nil, filepath.Base((&journal{}).path(endpointOf(41))), rulesName)
	j.keep(map[config.Endpoint]*pool.Generation{endpointOf(41): nil})
	j.want(endpointOf(41), nil, rulesName)
	j.want(endpointOf(40), g, rulesName)
	if j.log.Len() > 0 {
		t.Error(j.log.String())
	}
}

// TestJournalMakes: chains that a service would get anyway are not taken from the disk.
func TestJournalMakes(t *testing.T) {
	j := &journalTest{T: t, dir: t.TempDir()}
	s := &Service{Members: backends(5)}
	s.Endpoint = endpointOf(1)
	s.Continuity = config.Continuity{Policy: config.PolicyOffer, Table: config.Rendezvous,
		Candidates: 2, Depth: 4}
	secret := [16]byte{1}
	g, err := pool.New(poolSpec(s.Endpoint, s.Continuity, 251, secret), s.Members, 0)
	must(t, err)
	j.keep(map[config.Endpoint]*pool.Generation{s.Endpoint: g})
	k := j.open()
	defer k.Close()
	other := *s
	other.Members = backends(6)
	for name, test := range map[string]struct {
		is, want bool
	}{
		"the same":      {k.makes(s, 251, secret), true},
		"a backend":     {k.makes(&other, 251, secret), false},
		"buckets":       {k.makes(s, 257, secret), false},
		"secret":        {k.makes(s, 251, [16]byte{2}), false},
		"not the other": {k.makes(&Service{}, 251, secret), false},
	} {
		if test.is != test.want {
			t.Errorf("%s: %v", name, test.is)
		}
	}
}

// What is damaged is as good as nothing, and what comes next is kept again.
func TestDamagedRules(t *testing.T) {
	g, err := pool.New(ruledSpec, backends(5), 0)
	must(t, err)
	for name, damage := range map[string]func(good []byte) []byte{
		"empty":        func([]byte) []byte { return nil },
		"cut off":      func(good []byte) []byte { return good[:len(good)-1] },
		"bytes behind": func(good []byte) []byte { return append(good, 0) },
		"zeros":        func(good []byte) []byte { return make([]byte, len(good)) },
		"a long name":  func(good []byte) []byte { good[len(rulesMagic)] = 0xff; return good },
	} {
		t.Run(name, func(t *testing.T) {
			j := &journalTest{T: t, dir: t.TempDir()}
			kept := map[config.Endpoint]*pool.Generation{endpointOf(1): g}
			j.keep(kept)
			path := filepath.Join(j.dir, "e.chains", rulesName)
			good, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, damage(good), 0o600))
			j.want(endpointOf(1), nil, rulesName)
			if !strings.Contains(j.log.String(), "chains from before are lost") {
				t.Errorf("the log says %q", j.log.String())
			}
			j.keep(kept)
			j.want(endpointOf(1), g, rulesName)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever comes is read or refused, and what is read is read the same again.
func FuzzParseRules(f *testing.F) {
	g, err := pool.New(ruledSpec, backends(5), 0)
	if err != nil {
		f.Fatal(err)
	}
	rule, _ := g.Rule()
	f.Add(rules{"a": {rule, time.Unix(0, 1)}, "b": {rule, time.Unix(2, 0)}}.text())
	f.Add([]byte(rulesMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		read, err := parseRules(b)
		if err != nil {
			return
		}
		text := read.text()
		again, err := parseRules(text)
		if err != nil || len(again) != len(read) || !bytes.Equal(again.text(), text) {
			t.Errorf("% x is read as % x, %v", b, text, err)
		}
	})
}
