package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/lab"
	"sextant/te/topology/dataset"
	"sextant/te/topology/format"
)

func TestTopologySessions(t *testing.T) {
	for _, s := range []struct {
		name  string
		lines []string
	}{
		{"topology-list", []string{
			"topology list", "topology list -o json", "topology list -o name",
			"topology list paper-table3", "topology list defo -o json",
			"topology list nonesuch",
		}},
		{"topology-show", []string{
			"topology show zoo/Abilene",
			"topology show zoo/Abilene --nodes --edges -o wide --delay-unit us",
			"topology show testdata/triangle.edges --nodes --edges",
			"topology show testdata/triangle.edges --nodes --edges -o json",
			"topology show testdata/triangle.edges -o name",
			"topology show paper-table3/AS3967 -o yaml",
			"topology show abilene", "topology show nonesuch", "topology show",
			"topology show testdata",
			"topology show testdata/good.yaml", "topology show testdata/good.yaml --from edges",
			"topology show zoo/Abilene --from pdf",
			"topology show zoo/Abilene --delay-unit weeks",
		}},
		{"topology-check", []string{
			"topology check paper-table3/AS1755", "topology check testdata/triangle.edges -o wide",
			"topology check testdata/triangle.edges -o json",
			"topology check testdata/triangle.edges --strict -o name",
			"topology check zoo/Abilene --strict --delay-unit us",
			"topology check testdata/triangle.edges --demands testdata/triangle.demands",
			"topology check testdata/triangle.edges --demands testdata/none.demands",
			"topology check testdata/broken.graph",
		}},
		{"topology-convert", []string{
			"topology convert testdata/triangle.edges",
			"topology convert testdata/triangle.edges --to repetita",
			"topology convert testdata/triangle.edges --to repetita -q",
			"topology convert testdata/triangle.edges --to lab",
			"topology convert zoo/Arpanet196912 --to lab",
			"topology convert testdata/triangle.edges --to rocketfuel",
			"topology convert testdata/triangle.edges x.foo",
			"topology convert testdata/triangle.edges --to pdf",
			"topology generate", "topology generate grid --width 2 --height 1",
			"topology generate fat-tree --k 3",
			"topology generate isp --routers 3 x.graph",
		}},
		{"topology-draw", []string{"topology draw testdata/triangle.edges",
			"topology draw zoo/Abilene --label colour"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			newWorld(t, fakeNode).script(s.name, s.lines)
		})
	}
}

func TestTopologyFromStandardInput(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.stdin = "a -- b\n"
	if out := w.run("topology", "show", "-", "-o", "name"); !strings.Contains(out,
		"\na\nb\n[exit 0]") {
		t.Error(out)
	}
}

// What is written to a file can be read again, in the format of the file's ending.
func TestTopologyFiles(t *testing.T) {
	w := newWorld(t, fakeNode)
	folder := t.TempDir()
	for _, name := range []string{"a.graph", "a.graphml", "a.json", "a.edges", "a.txt", "a.xml",
		"a.yaml"} {
		file := filepath.Join(folder, name)
		if out := w.run("topology", "convert", "zoo/Abilene", file, "-q"); !strings.HasSuffix(out,
			"[exit 0]\n") {
			t.Fatal(out)
		}
		g, err := readTopology(file)
		if err != nil || g.Nodes() != 11 || g.Edges() != 28 {
			t.Errorf("%s is not read again: %v", name, err)
		}
	}
	pair := filepath.Join(folder, "1755")
	if out := w.run("topology", "convert", "rocketfuel-raw/1755", pair, "--to",
		"rocketfuel"); !strings.HasSuffix(out, "[exit 0]\n") {
		t.Fatal(out)
	}
	for _, arg := range []string{pair, filepath.Join(pair, "weights.intra")} {
		if g, err := readTopology(arg); err != nil || g.Edges() != 322 || g.Name() != "1755" {
			t.Errorf("%s is not read again: %v", arg, err)
		}
	}
	if out := w.run("topology", "draw", "zoo/Abilene",
		filepath.Join(folder, "a.svg")); !strings.HasSuffix(out, "[exit 0]\n") {
		t.Error(out)
	}
	if svg, err := os.ReadFile(filepath.Join(folder, "a.svg")); err != nil ||
		!strings.HasPrefix(string(svg), "<svg ") {
		t.Errorf("the drawing is %.40q, %v", svg, err)
	}
	if out := w.run("topology", "convert", "zoo/Abilene",
		filepath.Join(folder, "none", "a.json")); !strings.Contains(out, "[exit 1]") {
		t.Error(out)
	}
}

// A topology that is written as a lab is a lab, and is read as the same network as the lab itself
// reads.
func TestTopologyAsLab(t *testing.T) {
	for _, name := range []string{"zoo/Abilene", "paper-table3/AS3967", "zoo/GtsCe",
		"caida-2024-08/AS1103", "rocketfuel/rf1755_real_hard"} {
		g, err := dataset.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := format.Write(g, format.Lab)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec, err := lab.Parse(name+".yaml", text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(spec.Nodes) != g.Nodes() || 2*len(spec.Links) != g.Edges() {
			t.Errorf("%s: the lab has %d nodes and %d links", name, len(spec.Nodes),
				len(spec.Links))
		}
	}
}

// The examples are read as the lab reads them, replicas included.
func TestLabsAsTopologies(t *testing.T) {
	for _, file := range []string{"../../examples/quickstart.yaml", "../../examples/hunting.yaml"} {
		spec, err := lab.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		g, err := readTopology(file)
		if err != nil {
			t.Fatal(err)
		}
		if g.Name() != spec.Name || g.Nodes() != len(spec.Nodes) || g.Edges() != 2*len(spec.Links) {
			t.Errorf("%s is read as %d nodes and %d edges", file, g.Nodes(), g.Edges())
		}
		for _, link := range spec.Links {
			u, _ := g.Lookup(link.Ends[0].Node)
			v, _ := g.Lookup(link.Ends[1].Node)
			found := false
			for _, e := range g.Out(u) {
				found = found || g.To(e) == v && g.Edge(e).CapacityKbps*1000 == int64(link.RateBits)
			}
			if !found {
				t.Errorf("%s: there is no link from %s to %s of %d bit/s", file, link.Ends[0],
					link.Ends[1], link.RateBits)
			}
		}
	}
}
