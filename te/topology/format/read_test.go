package format

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/te/topology"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, go test -update rewrites it):\n%s", file, diff)
	}
}

func testFile(t testing.TB, name string) File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return File{Name: name, Text: text}
}

// published are files as their publishers write them, in the order of their dumps.
var published = []string{
	"small.graph", "zoo.graphml", "sndlib.txt", "sndlib.xml", "topohub.json", "links.json",
	"list.edges", "lab.yaml",
}

func TestRead(t *testing.T) {
	for _, name := range published {
		t.Run(name, func(t *testing.T) {
			g, err := Read(testFile(t, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".dump", dump(g))
		})
	}
}

// The name says nothing: the content alone decides, except that a list of edges looks like much
// else.
func TestDetect(t *testing.T) {
	want := map[string]Format{
		"small.graph": Repetita, "zoo.graphml": GraphML, "sndlib.txt": SNDlib,
		"sndlib.xml": SNDlibXML, "topohub.json": NodeLink,
		"links.json": NodeLink, "list.edges": Edges, "lab.yaml": Lab,
	}
	for _, name := range published {
		f := testFile(t, name)
		f.Name = "file"
		if got := detect(f); got != want[name] {
			t.Errorf("%s is taken for %q, not %q", name, got, want[name])
		}
		f.Text = append([]byte("\ufeff"), f.Text...)
		if got := detect(f); got != want[name] {
			t.Errorf("%s with a byte order mark is taken for %q, not %q", name, got, want[name])
		}
	}
	for name, format := range map[string]Format{"x.yml": Lab, "x.graph": Repetita, "x.edges": Edges,
		"1239/weights.intra": Rocketfuel, "x": ""} {
		if got := detect(File{Name: name}); got != format {
			t.Errorf("an empty file %s is taken for %q, not %q", name, got, format)
		}
	}
}

// XML may begin with declarations and comments.
func TestDetectXML(t *testing.T) {
	for text, want := range map[string]Format{
		"<network/>": SNDlibXML, "<network>": SNDlibXML, "<?xml version=\"1.0\"?>\n<!DOCTYPE " +
			"network>\n<!-- tiny -->\n<network version=\"1.0\">": SNDlibXML,
		"<!-- a <b> --><graphml xmlns=\"x\">": GraphML, "<svg>": "", "no <network>": "",
	} {
		if got := detect(File{"file", []byte(text)}); got != want {
			t.Errorf("%s is taken for %q, not %q", text, got, want)
		}
	}
}

// A list that begins with more nodes than detect looks at is recognised all the same.
func TestDetectLongList(t *testing.T) {
	text := "# made by hand\n#! delay us\n" + strings.Repeat("#! node with-a-long-name 0.0 0.0\n",
		10000)
	if got := detect(File{"file", []byte(text)}); got != Edges {
		t.Errorf("it is taken for %q", got)
	}
}

func TestDelayUnitOfOptions(t *testing.T) {
	g, err := Read(testFile(t, "small.graph"), Options{DelayUnit: 1000})
	if err != nil || g.DelayUnit() != 1000 {
		t.Errorf("a file that states no unit: %v, %v", g.DelayUnit(), err)
	}
	g, err = Read(testFile(t, "links.json"), Options{DelayUnit: 1000})
	if err != nil || g.DelayUnit() != 1e6 {
		t.Errorf("a file that states ms: %v, %v", g.DelayUnit(), err)
	}
}

func TestDemands(t *testing.T) {
	g, err := Read(testFile(t, "small.graph"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadDemands(testFile(t, "small.demands"), g)
	want := []Demand{{"demand_0", 0, 1, 31446}, {"demand_1", 2, 0, 5}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRocketfuel(t *testing.T) {
	weights := File{"w", []byte("San+Jose,+CA1 b 2.5\nb San+Jose,+CA1 2\nb c 1\nb c 3.25\n")}
	latencies := File{"l", []byte("b c 7\nSan+Jose,+CA1 b 4\nb c 8\nb San+Jose,+CA1 5\n")}
	g, err := ReadRocketfuel("AS1", weights, latencies)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rocketfuel.dump", dump(g))
	w, l, err := WriteRocketfuel(g)
	if err != nil || string(w) != string(weights.Text) {
		t.Errorf("weights are written as\n%s%v", w, err)
	}
	again, err := ReadRocketfuel("AS1", File{"w", w}, File{"l", l})
	if err != nil || dump(again) != dump(g) {
		t.Errorf("latencies are written as\n%s%v", l, err)
	}
}

func TestRocketfuelWantsMilliseconds(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"#! delay us\na -> b 1 5\n", "a delay of 5 us is no whole number of milliseconds"},
		{"a -> b 1 5\n", "the unit of its delays is not known"},
	} {
		g, err := Read(File{"x.edges", []byte(c.text)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := WriteRocketfuel(g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	g, err := Read(File{"x.edges", []byte("#! delay s\na -> b 1 5\n")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, l, err := WriteRocketfuel(g); string(l) != "a b 5000\n" {
		t.Errorf("5 s are written as %q, %v", l, err)
	}
}

func TestLost(t *testing.T) {
	g, err := Read(testFile(t, "list.edges"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[Format]string{
		GraphML: "", NodeLink: "", Edges: "",
		Repetita:   "the unit of delays, shared-risk groups, SIDs",
		Rocketfuel: "capacities, coordinates, names of edges, shared-risk groups, SIDs",
		SNDlib:     "weights, delays, shared-risk groups, SIDs",
		Lab:        "delays, coordinates, names of edges, shared-risk groups, SIDs",
	} {
		if got := strings.Join(Lost(g, format), ", "); got != want {
			t.Errorf("%s loses %q, not %q", format, got, want)
		}
	}
}

// A lab has one rate for both directions.
func TestLostDirection(t *testing.T) {
	g, err := Read(File{"x.edges", []byte("a -> b 1 0 10M\nb -> a 1 0 20M\n")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[Format]string{Lab: "the capacity of the second direction of " +
		"links", Repetita: ""} {
		if got := strings.Join(Lost(g, format), ", "); got != want {
			t.Errorf("%s loses %q, not %q", format, got, want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	g, err := Read(File{"x.edges", []byte("a -> b\n")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []Format{SNDlib, SNDlibXML, Lab, Rocketfuel, "gml"} {
		if text, err := Write(g, format); err == nil {
			t.Errorf("%s holds a link of one direction: %s", format, text)
		}
	}
}

// Names that a format gives a meaning to stay different names.
func TestOddNames(t *testing.T) {
	b := topology.NewBuilder("odd names", 0)
	for _, name := range []string{"a b", "a_b", "#1", "_1", "(", ")", "A", "a", "<&\"", "->", "--",
		"é", "tab\there", "{i}", "0"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for v := range b.Nodes() - 1 {
		for _, ends := range [][2]int{{v, v + 1}, {v + 1, v}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]),
				To: topology.Node(ends[1]), Weight: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := b.Build()
	var texts strings.Builder
	for _, c := range codecs {
		text, err := Write(g, c.format)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(File{"odd names", text}, Options{Format: c.format})
		if err != nil || again.Nodes() != g.Nodes() || again.Edges() != g.Edges() {
			t.Errorf("%s: %v\n%s", c.format, err, text)
			continue
		}
		for v := range again.Nodes() {
			texts.WriteString(again.Node(topology.Node(v)).Name + "  ")
		}
		texts.WriteString(string(c.format) + "\n")
	}
	golden(t, "names.txt", texts.String())
}
