package format

import (
	"strings"
	"testing"
)

// fuzz feeds one reader. What it reads is written and read again, and is then the same.
func fuzz(f *testing.F, format Format) {
	for _, name := range published {
		if seed := testFile(f, name); detect(seed) == format {
			f.Add(seed.Text)
		}
	}
	for _, fault := range faults {
		if fault.format == format {
			f.Add([]byte(fault.text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := Read(File{"file", text}, Options{Format: format})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "file:") {
				t.Fatalf("the error names no place: %v", err)
			}
			return
		}
		once, err := Write(g, format)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(File{"file", once}, Options{Format: format})
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, once)
		}
		if again.Nodes() != g.Nodes() || again.Edges() != g.Edges() {
			t.Fatalf("%s\nbecame\n%s", dump(g), dump(again))
		}
		twice, err := Write(again, format)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%s\nis written as\n%s%v", once, twice, err)
		}
	})
}

func FuzzRepetita(f *testing.F)  { fuzz(f, Repetita) }
func FuzzGraphML(f *testing.F)   { fuzz(f, GraphML) }
func FuzzSNDlib(f *testing.F)    { fuzz(f, SNDlib) }
func FuzzSNDlibXML(f *testing.F) { fuzz(f, SNDlibXML) }
func FuzzNodeLink(f *testing.F)  { fuzz(f, NodeLink) }
func FuzzEdges(f *testing.F)     { fuzz(f, Edges) }
func FuzzLab(f *testing.F)       { fuzz(f, Lab) }

func FuzzRocketfuel(f *testing.F) {
	f.Add([]byte("a b 2.5\nb a 1\n"), []byte("b a 3\na b 4\n"))
	f.Fuzz(func(t *testing.T, weights, latencies []byte) {
		g, err := ReadRocketfuel("graph", File{"w", weights}, File{"l", latencies})
		if err != nil {
			return
		}
		w, l, err := WriteRocketfuel(g)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadRocketfuel("graph", File{"w", w}, File{"l", l})
		if err != nil || again.Edges() != g.Edges() {
			t.Fatalf("%v\n%s%s", err, w, l)
		}
	})
}

func FuzzDemands(f *testing.F) {
	g, err := Read(testFile(f, "small.graph"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(testFile(f, "small.demands").Text)
	f.Fuzz(func(t *testing.T, text []byte) {
		demands, err := ReadDemands(File{"file", text}, g)
		for _, d := range demands {
			if err == nil && (int(d.From) >= g.Nodes() || int(d.To) >= g.Nodes() || d.Kbps < 0) {
				t.Fatalf("demand %+v in a graph of %d nodes", d, g.Nodes())
			}
		}
	})
}
