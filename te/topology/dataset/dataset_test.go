package dataset

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/te/topology"
)

func TestAllOpen(t *testing.T) {
	perSet := map[string]int{}
	for _, name := range Names() {
		g, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		perSet[path.Dir(name)]++
		if g.Name() != path.Base(name) || g.Nodes() < 2 || g.Edges() < 2 {
			t.Errorf("%s: graph %q of %d nodes and %d edges", name, g.Name(), g.Nodes(), g.Edges())
		}
	}
	for _, s := range Sets() {
		if perSet[s.Name] == 0 {
			t.Errorf("set %s is empty", s.Name)
		}
		delete(perSet, s.Name)
	}
	if len(perSet) > 0 {
		t.Errorf("sets without a description: %v", perSet)
	}
}

// The sizes that the sources state.
func TestSizes(t *testing.T) {
	for name, want := range map[string][2]int{
		"paper-table3/AS1239": {153, 1010}, "paper-table3/AS1755": {67, 248},
		"paper-table3/AS3257": {103, 484}, "paper-table3/AS3967": {57, 208},
		"rocketfuel-raw/1239": {315, 1944}, "rocketfuel/rf1239_real_hard": {315, 1944},
		"rocketfuel-raw/1755":    {87, 322},
		"defo/synth100_opt_hard": {100, 572}, "caida-2024-08/AS7018": {594, 3348},
		"backbone/world":        {3815, 10378},
		"large/as20000102_unit": {6474, 25144},
	} {
		g, err := Open(name)
		if err != nil || g.Nodes() != want[0] || g.Edges() != want[1] {
			t.Errorf("%s: %v nodes and edges, not %v: %v", name, [2]int{g.Nodes(), g.Edges()}, want,
				err)
		}
	}
}

// Rocketfuel's own files and REPETITA's copy of them are read as the same network.
func TestRocketfuelTwice(t *testing.T) {
	raw, err := Open("rocketfuel-raw/3967")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := Open("rocketfuel/rf3967_real_hard")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := weights(raw), weights(copied); !slices.Equal(a, b) {
		t.Errorf("weights and delays differ: %d and %d edges", len(a), len(b))
	}
}

func weights(g *topology.Graph) [][2]int64 {
	var all [][2]int64
	for e := range topology.Edge(g.Edges()) {
		all = append(all, [2]int64{int64(g.Weight(e)), g.Delay(e)})
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return all
}

func TestDelayUnits(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"paper-table3/AS3967": time.Millisecond, "zoo/Abilene": 0,
		"backbone/africa": time.Microsecond, "large/isp1000": time.Microsecond,
		"large/as20000102_unit": 0, "rocketfuel-raw/1755": time.Millisecond,
	} {
		if g, err := Open(name); err != nil || g.DelayUnit() != want {
			t.Errorf("%s: the unit is not %v: %v", name, want, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"abilene":          "did you mean zoo-unary/Abilene or zoo/Abilene?",
		"zoo/Nonesuch":     "sextant topology list",
		"":                 "sextant topology list",
		"rocketfuel/as123": "sextant topology list",
	} {
		if _, err := Open(name); !errors.Is(err, ErrUnknown) || !strings.HasSuffix(err.Error(),
			want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The README says of each set where it comes from.
func TestReadmeNamesAllSets(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Sets() {
		if !strings.Contains(string(text), "\n| "+s.Name+" |") || s.Source == "" ||
			s.Licence == "" || s.About == "" {
			t.Errorf("set %s has no row in README.md, or no source or licence", s.Name)
		}
	}
}
