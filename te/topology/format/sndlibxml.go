package format

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sextant/te/topology"
)

// readSNDlibXML reads the XML format of SNDlib, with the same meaning as the native one.
func readSNDlibXML(s *source) (*topology.Graph, error) {
	r := &sndlibXMLReader{source: s, builder: s.builder(s.graphName(), time.Microsecond),
		decoder: s.xmlDecoder()}
	for {
		line, _ := r.decoder.InputPos()
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, s.xmlFault(err, line)
		}
		if start, ok := token.(xml.StartElement); ok {
			line, _ = r.decoder.InputPos()
			if err := r.element(start, line); err != nil {
				return nil, err
			}
		}
	}
	if !r.network {
		return nil, s.errorf(1, "there is no <network>; give a network of SNDlib")
	}
	return finishSNDlib(r.builder, r.places, r.links)
}

type sndlibXMLReader struct {
	*source
	builder builder
	decoder *xml.Decoder
	network bool
	planar  bool // coordinates are pixels
	places  []topology.NodeSpec
	links   []sndlibLink
}

type sndlibXMLNode struct {
	ID string `xml:"id,attr"`
	X  string `xml:"coordinates>x"`
	Y  string `xml:"coordinates>y"`
}

type sndlibXMLLink struct {
	ID        string   `xml:"id,attr"`
	Source    string   `xml:"source"`
	Target    string   `xml:"target"`
	Installed string   `xml:"preInstalledModule>capacity"`
	Modules   []string `xml:"additionalModules>addModule>capacity"`
}

func (r *sndlibXMLReader) element(start xml.StartElement, line int) error {
	switch start.Name.Local {
	case "network":
		r.network = true
	case "networkStructure", "links":
	case "nodes":
		r.planar = attribute(start, "coordinatesType") == "pixel"
	case "node":
		var n sndlibXMLNode
		if err := r.decoder.DecodeElement(&n, &start); err != nil {
			return r.xmlFault(err, line)
		}
		return r.node(n, line)
	case "link":
		var l sndlibXMLLink
		if err := r.decoder.DecodeElement(&l, &start); err != nil {
			return r.xmlFault(err, line)
		}
		return r.link(l, line)
	default: // meta, demands
		if err := r.decoder.Skip(); err != nil {
			return r.xmlFault(err, line)
		}
	}
	return nil
}

func (r *sndlibXMLReader) node(n sndlibXMLNode, line int) error {
	spec := topology.NodeSpec{Name: strings.TrimSpace(n.ID)}
	if n.X != "" || n.Y != "" {
		var err error
		if spec.Place, err = point(strings.TrimSpace(n.X), strings.TrimSpace(n.Y)); err != nil {
			return r.errorf(line, "%w", err)
		}
		spec.Known = true
	}
	r.places = append(r.places, spec)
	if r.planar {
		r.places[len(r.places)-1].Known = false // it can be drawn, but is at no distance
	}
	_, err := r.builder.node(line, spec)
	return err
}

func (r *sndlibXMLReader) link(l sndlibXMLLink, line int) error {
	link := sndlibLink{
		line: line, id: strings.TrimSpace(l.ID), source: strings.TrimSpace(l.Source),
		dest: strings.TrimSpace(l.Target),
	}
	for _, text := range append([]string{l.Installed}, l.Modules...) {
		if text = strings.TrimSpace(text); text == "" || link.kbps > 0 {
			continue
		}
		var err error
		if link.kbps, err = sndlibCapacity(text); err != nil {
			return r.errorf(line, "%w", err)
		}
	}
	r.links = append(r.links, link)
	return nil
}

func writeSNDlibXML(g *topology.Graph) ([]byte, error) {
	links, err := bothWays(g)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	names := distinct(g, xmlWord)
	out.WriteString(xml.Header + `<network xmlns="http://sndlib.zib.de/network" version="1.0">` +
		"\n <networkStructure>\n")
	fmt.Fprintf(&out, "  <nodes coordinatesType=%q>\n", coordinatesType(g))
	for v := range g.Nodes() {
		fmt.Fprintf(&out, "   <node id=\"%s\">", escapeXML(names[v]))
		if n := g.Node(topology.Node(v)); n.Known {
			fmt.Fprintf(&out, "<coordinates><x>%s</x><y>%s</y></coordinates>",
				decimal(n.Place.Longitude), decimal(n.Place.Latitude))
		}
		out.WriteString("</node>\n")
	}
	out.WriteString("  </nodes>\n  <links>\n")
	for i, e := range links {
		fmt.Fprintf(&out, "   <link id=\"%s\"><source>%s</source><target>%s</target>",
			escapeXML(xmlWord(sndlibID(e.Name, i))),
			escapeXML(names[e.From]), escapeXML(names[e.To]))
		if e.CapacityKbps > 0 {
			fmt.Fprintf(&out,
				"<preInstalledModule><capacity>%s</capacity><cost>0.0</cost></preInstalledModule>",
				mbps(e))
		}
		out.WriteString("</link>\n")
	}
	out.WriteString("  </links>\n </networkStructure>\n <demands/>\n</network>\n")
	return out.Bytes(), nil
}

func coordinatesType(g *topology.Graph) string {
	for v := range g.Nodes() {
		if n := g.Node(topology.Node(v)); n.Known && !onEarth(n.Place) {
			return "pixel"
		}
	}
	return "geographical"
}
