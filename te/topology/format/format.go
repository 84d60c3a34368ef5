package format

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sextant/packet/lists"
	"sextant/te/topology"
)

// Format is a way to write a graph as text.
type Format string

// The formats.
const (
	Repetita   Format = "repetita"   // .graph files of svissicchio/Repetita
	Rocketfuel Format = "rocketfuel" // weights.intra and latencies.intra; see ReadRocketfuel
	GraphML    Format = "graphml"    // as the Internet Topology Zoo uses it
	SNDlib     Format = "sndlib"     // native text of sndlib.zib.de
	SNDlibXML  Format = "sndlib-xml"
	NodeLink   Format = "node-link" // JSON of networkx.node_link_data
	Edges      Format = "edges"     // one edge a line
	Lab        Format = "lab"       // the topology of a lab file
)

// codec is how a format is read and written, and by which ending of a file's name it is known.
type codec struct {
	format Format
	ending string
	read   func(*source) (*topology.Graph, error)
	write  func(*topology.Graph) ([]byte, error)
	keeps  attributes
}

var codecs = []codec{
	{Repetita, ".graph", readRepetita, writeRepetita,
		attributes{weight: true, delay: true, capacity: true, place: true, edgeName: true,
			twoCapacities: true}},
	{GraphML, ".graphml", readGraphML, writeGraphML, everything},
	{SNDlib, ".txt", readSNDlib, writeSNDlib, attributes{capacity: true, place: true,
		edgeName: true}},
	{SNDlibXML, ".xml", readSNDlibXML, writeSNDlibXML, attributes{capacity: true, place: true,
		edgeName: true}},
	{NodeLink, ".json", readNodeLink, writeNodeLink, everything},
	{Edges, ".edges", readEdges, writeEdges, everything},
	{Lab, ".yaml", readLab, writeLab, attributes{weight: true, capacity: true}},
}

// All lists the formats.
func All() []Format {
	all := []Format{Rocketfuel}
	for _, c := range codecs {
		all = append(all, c.format)
	}
	slices.Sort(all)
	return all
}

// OfName tells the format that the ending of a file's name stands for; "" if none.
func OfName(file string) Format {
	ending := path.Ext(file)
	if ending == ".yml" {
		ending = ".yaml"
	}
	for _, c := range codecs {
		if c.ending == ending {
			return c.format
		}
	}
	return ""
}

// File is the text of a file, and its name for errors and as the name of the graph.
type File struct {
	Name string
	Text []byte
}

// Options say what a file does not.
type Options struct {
	// Format is the file's format. Optional; without it the content decides, then the ending of the
	// name.
	Format Format
	// DelayUnit is the unit of the file's delays. Optional, and of no effect on formats that state
	// their own.
	DelayUnit time.Duration
}

// Read reads a graph, which is named after the file. Its errors name file and line. Rocketfuel's
// pairs of files are read by [ReadRocketfuel].
func Read(f File, o Options) (*topology.Graph, error) {
	format := o.Format
	if format == "" {
		format = detect(f)
	}
	s := newSource(f, o.DelayUnit)
	if err := s.isText(format); err != nil {
		return nil, err
	}
	switch format {
	case "":
		return nil, s.errorf(1, "the format is not recognised; name it: %s", names())
	case Rocketfuel:
		return nil, s.errorf(1, "Rocketfuel keeps weights and latencies in two files; give their "+
			"folder")
	}
	c, ok := codecOf(format)
	if !ok {
		return nil, s.errorf(1, "there is no format %q; choose one of %s", format, names())
	}
	return c.read(s)
}

// Write writes a graph. It fails if the format can't hold the graph's numbers; what it can't hold
// besides is left out, and listed by [Lost].
func Write(g *topology.Graph, format Format) ([]byte, error) {
	c, ok := codecOf(format)
	if !ok {
		return nil, fmt.Errorf("write %s: there is no format %q in one file; choose one of %s",
			g.Name(), format, names())
	}
	text, err := c.write(g)
	if err != nil {
		return nil, fmt.Errorf("write %s as %s: %w", g.Name(), format, err)
	}
	return text, nil
}

func codecOf(format Format) (codec, bool) {
	i := slices.IndexFunc(codecs, func(c codec) bool { return c.format == format })
	if i < 0 {
		return codec{}, false
	}
	return codecs[i], true
}

func names() string {
	all := lists.Map(All(), func(f Format) string { return string(f) })
	return strings.Join(all, ", ")
}
