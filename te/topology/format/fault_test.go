package format

import (
	"fmt"
	"strings"
	"testing"

	"sextant/te/topology"
)

// faults are wrong files; what is said of each is in testdata/faults.txt.
var faults = []struct {
	format Format
	text   string
}{
	{"", ""},
	{"", "what is this"[:4]},
	{"gml", "graph ["},
	{Rocketfuel, "a b 2"},
	{Repetita, ""},
	{Repetita, "NODES"},
	{Repetita, "NODES many\nlabel x y\n"},
	{Repetita, "NODES 2\na 0 0\nb 0 0\n"},
	{Repetita, "NODES 3\nlabel x y\na 0 0\n"},
	{Repetita, "NODES 1\nlabel x y\na b 0 0\n\nEDGES 0\nlabel\n"},
	{Repetita, "NODES 2\nlabel x y\na 0 0\na 0 0\n\nEDGES 0\nlabel\n"},
	{Repetita, "NODES 1\nlabel x y\na nan 0\n\nEDGES 0\nlabel\n"},
	{Repetita, "NODES 1\nlabel x y\na 0 0\n"},
	{Repetita, twoNodes + "e 0 2 1 1 1\n"},
	{Repetita, twoNodes + "e 0 -1 1 1 1\n"},
	{Repetita, twoNodes + "e 0 1 0 1 1\n"},
	{Repetita, twoNodes + "e 0 1 1.5 1 1\n"},
	{Repetita, twoNodes + "e 0 1 4294967296 1 1\n"},
	{Repetita, twoNodes + "e 0 1 1 1 -1\n"},
	{Repetita, twoNodes + "e 0 1 1 1 nan\n"},
	{Repetita, twoNodes + "e 0 1 1 1 1e300\n"},
	{Repetita, twoNodes + "e 0 1 1 1 99999999999999999999\n"},
	{Repetita, twoNodes + "e 0 1 1 inf 1\n"},
	{Repetita, twoNodes + "e 0 1 1 1\n"},
	{Repetita, twoNodes + "e 0 1 1 1 1\nf 1 0 1 1 1\n"},
	{Repetita, "NODES 1\nlabel x y\n\xff 0 0\n"},
	{Edges, "a\n"},
	{Edges, "a -- \n"},
	{Edges, "a -- b ten\n"},
	{Edges, "a -- b 1 2 3 4\n"},
	{Edges, "a -- b 1 2 3Q\n"},
	{Edges, "a -- b 1 2 -3G\n"},
	{Edges, "a -- b colour=red\n"},
	{Edges, "a -- b srlg=1,x\n"},
	{Edges, "a -- b sid=10.0.0.1\n"},
	{Edges, "#! delay weeks\n"},
	{Edges, "#! speed 3\n"},
	{Edges, "#! node a 1\n"},
	{Edges, "#! node a sid=fcbb::1/32\n"},
	{Edges, "#! node a\n#! node a\n"},
	{NodeLink, "[]"},
	{NodeLink, "{"},
	{NodeLink, "{}"},
	{NodeLink, "{\"nodes\": [],\n\"links\": [], \"edges\": []}"},
	{NodeLink, "{\"nodes\": 3}"},
	{NodeLink, "{\"nodes\": [3]}"},
	{NodeLink, "{\"nodes\": [{\"id\": 1},\n{\"id\": \"1\"}]}"},
	{NodeLink, "{\"nodes\": [{}]}"},
	{NodeLink, "{\"nodes\": [{\"id\": 1}],\n\"edges\": [\n{\"source\": 1}]}"},
	{NodeLink, "{\"nodes\": [{\"id\": 1}],\n\"edges\": [\n{\"source\": 1, \"target\": 2}]}"},
	{NodeLink, "{\"nodes\": [{\"id\": 1}, {\"id\": 2}],\n\"edges\": [\n{\"source\": 1, " +
		"\"target\": 2, \"weight\": true}]}"},
	{NodeLink, "{\"nodes\": [{\"id\": 1}, {\"id\": 2}],\n\"edges\": [\n{\"source\": 1, " +
		"\"target\": 2, \"dist\": -4}]}"},
	{NodeLink, "{\"nodes\": [], \"graph\": {\"delayUnit\": \"h\"}}"},
	{NodeLink, "{\"nodes\": []} {}"},
	{GraphML, ""},
	{GraphML, "<graphml><graph>\n<node id=\"1\"></graph>"},
	{GraphML, "<graphml><graph/>\n<graph/></graphml>"},
	{GraphML, "<graphml><graph>\n<hyperedge/></graph></graphml>"},
	{GraphML, "<graphml><graph>\n<node id=\"a\"><graph/></node></graph></graphml>"},
	{GraphML, "<graphml><graph>\n<node/></graph></graphml>"},
	{GraphML, "<graphml><graph><node id=\"a\"/>\n<edge source=\"a\" " +
		"target=\"b\"/></graph></graphml>"},
	{GraphML, "<?xml version=\"1.0\" encoding=\"utf-7\"?><graphml/>"},
	{SNDlib, ""},
	{SNDlib, "?SNDlib native format; type: solution; version: 1.0"},
	{SNDlib, sndlibHead + "\nNODES (\na\n"},
	{SNDlib, sndlibHead + "\nNODES (\na ( 1 )\n)\n"},
	{SNDlib, sndlibHead + "\nNODES (\na ( 1 x )\n)\n"},
	{SNDlib, sndlibHead + "\nNODES (\na ) )\n)\n"},
	{SNDlib, sndlibHead + "\nstray\n"},
	{SNDlib, sndlibHead + "\nLINKS (\nL1 ( a b ) 0 0 0 0 ( )\n)\n"},
	{SNDlib, sndlibHead + "\nLINKS (\nL1 a b\n)\n"},
	{SNDlib, sndlibHead + "\nNODES (\na\nb\n)\nLINKS (\nL1 ( a b ) nan 0 0 0 ( )\n)\n"},
	{SNDlibXML, "<solution/>"},
	{SNDlibXML, "<network>\n<networkStructure><nodes><node/></nodes></networkStructure></network>"},
	{SNDlibXML, "<network><networkStructure><links>\n<link " +
		"id=\"l\"><source>a</source></link></links></networkStructure></network>"},
	{Lab, ""},
	{Lab, "nodes: [a"},
	{Lab, "name: x"},
	{Lab, strings.Repeat("[", 2000)},
	{Lab, "topology:\n  nodes:\n    a: {count: -1}\n"},
	{Lab, "topology:\n  nodes:\n    a: {count: 100000}\n"},
	{Lab, "topology:\n  nodes:\n    a:\n  links:\n    - {endpoints: [\"a:e\", \"b:e\"]}\n"},
	{Lab, "topology:\n  nodes:\n    a:\n  links:\n    - {endpoints: [\"a:e\"]}\n"},
	{Lab, "topology:\n  nodes:\n    a:\n    b:\n  links:\n    - endpoints: [\"a:e\", \"b:e\"]\n  " +
		"    rate: 3mbps\n"},
	{Lab, "topology:\n  nodes: &a\n    a: *a\n  links: *a\n"},
	{Lab, "topology: &t\n  nodes: *t\n"},
}

const twoNodes = "NODES 2\nlabel x y\na 0 0\nb 0 0\n\nEDGES 1\nlabel src dest weight bw delay\n"

func TestFaults(t *testing.T) {
	var out strings.Builder
	for _, f := range faults {
		text := f.text
		if len(text) > 200 {
			text = text[:20] + "..."
		}
		g, err := Read(File{"file", []byte(f.text)}, Options{Format: f.format})
		fmt.Fprintf(&out, "%s %q\n", f.format, text)
		if err != nil {
			fmt.Fprintf(&out, "  %s\n", err)
		} else {
			fmt.Fprintf(&out, "  read: %d nodes, %d edges\n", g.Nodes(), g.Edges())
		}
	}
	golden(t, "faults.txt", out.String())
}

func TestFaultsOfRocketfuel(t *testing.T) {
	var out strings.Builder
	for _, f := range [][2]string{
		{"a b\n", "a b 1\n"}, {"a b 1\n", "a b\n"}, {"a b 1\n", "a b 1.5\n"},
		{"a b 1.234\n", "a b 1\n"}, {"a b 0\n", "a b 1\n"},
		{"a b -1\n", "a b 1\n"}, {"a b nan\n", "a b 1\n"}, {"a b 99999999\n", "a b 1\n"},
		{"a b 1\n", ""}, {"a b 1\n", "a b 1\nb a 1\na c 1\n"},
		{"a b 1\n\xff", "a b 1\n"},
	} {
		_, err := ReadRocketfuel("x", File{"weights", []byte(f[0])},
			File{"latencies", []byte(f[1])})
		fmt.Fprintf(&out, "%q %q\n  %v\n", f[0], f[1], err)
	}
	golden(t, "rocketfuel-faults.txt", out.String())
}

func TestFaultsOfDemands(t *testing.T) {
	g, err := Read(testFile(t, "small.graph"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, text := range []string{"", "DEMANDS 1\nlabel\nd 0 3 1\n", "DEMANDS 1\nlabel\nd 0 1 -1\n",
		"DEMANDS 1\nlabel\nd 0 1 1\nd 0 1 1\n", "\xff"} {
		_, err := ReadDemands(File{"file", []byte(text)}, g)
		fmt.Fprintf(&out, "%q\n  %v\n", text, err)
	}
	golden(t, "demand-faults.txt", out.String())
}

// Names that nobody can read are refused, and no error repeats them.
func TestLongNamesAreRefused(t *testing.T) {
	long := strings.Repeat("n", 5<<20)
	for name, text := range map[string]string{
		"a.edges": long + " -- b\n",
		"b.edges": "a -- b " + long + "\n",
		"c.json": `{"directed": false, "nodes": [{"id": "` + long +
			`"}, {"id": "b"}], "links": []}`,
		"d.graphml": `<graphml><graph edgedefault="undirected"><node id="` + long +
			`"/></graph></graphml>`,
		"e.graph": "NODES 1\nlabel x y\n" + long +
			" 0 0\n\nEDGES 0\nlabel src dest weight bw delay\n",
	} {
		_, err := Read(File{Name: name, Text: []byte(text)}, Options{Format: OfName(name)})
		if err == nil {
			t.Errorf("%s: a name of %d bytes was taken", name, len(long))
		} else if len(err.Error()) > 3000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
	at := strings.Repeat("n", topology.MaxName)
	if _, err := Read(File{Name: "a.edges", Text: []byte(at + " -- b\n")}, Options{}); err != nil {
		t.Errorf("a name of %d bytes: %v", len(at), err)
	}
}
