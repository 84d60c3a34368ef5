package config

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
)

// Writer writes the canonical texts of nodes of which each follows from the one before. It keeps
// the text of each service of an edge, so that a change of one among thousands costs one. The zero
// value is ready. It is for one goroutine.
type Writer struct {
	services map[string]*writtenService // by name
}

// writtenService is a service and the lines that a node file has about it.
type writtenService struct {
	service Service
	lines   []byte
}

// markName stands for all services while a node is written without them. No service has it: names
// do not contain "~".
const markName = "~services"

// How far an item of edge.services is indented in a node file, and one of a list alone.
const serviceIndent, listIndent = "    ", "  "

// Marshal is [Marshal].
func (w *Writer) Marshal(n *Node) ([]byte, error) {
	if n.Edge == nil || len(n.Edge.Services) == 0 {
		w.services = nil
		return marshalWhole(n)
	}
	edge, frame := *n.Edge, *n
	edge.Services, frame.Edge = []Service{{Name: markName}}, &edge
	text, err := marshalWhole(&frame)
	if err != nil {
		return nil, err
	}
	before, after, err := aroundMark(text)
	if err != nil {
		return nil, err
	}
	services, err := w.linesOf(n.Edge.Services)
	if err != nil {
		return nil, fmt.Errorf("write services of node %q as YAML: %w", n.Name, err)
	}
	return bytes.Join(slices.Concat([][]byte{before}, services, [][]byte{after}), nil), nil
}

// Parse is [ParseOwn] of a text that w or an earlier one wrote. Last is the node that w wrote last,
// which was accepted: what both have in common is not read, and shares its memory.
func (w *Writer) Parse(name string, data []byte, last *Node) (*Node, error) {
	before := &readParts{node: last, services: make(map[string]Service, len(w.services))}
	for _, written := range w.services {
		before.add(written.lines, &written.service)
	}
	if last == nil || last.Edge == nil {
		before = nil
	}
	n, _, err := parseNode(name, data, readBounds{math.MaxInt, math.MaxInt}, before)
	return n, err
}

// aroundMark is a text before and after the item that stands for all services.
func aroundMark(text []byte) (before, after []byte, err error) {
	first := serviceIndent + "- name: " + markName + "\n"
	before, after, found := bytes.Cut(text, []byte(first))
	if !found {
		return nil, nil, fmt.Errorf("the text of a node has no item %q", first)
	}
	for bytes.HasPrefix(after, []byte(serviceIndent+"  ")) {
		_, after, _ = bytes.Cut(after, []byte("\n"))
	}
	return before, after, nil
}

// linesOf are the lines of services. What was not kept of them is written and kept; what is kept of
// others is forgotten.
func (w *Writer) linesOf(services []Service) ([][]byte, error) {
	lines := make([][]byte, len(services))
	var unknown []int
	for i := range services {
		s := &services[i]
		kept := w.services[s.Name]
		if kept == nil || !sharedBy(&kept.service, s) &&
			!equal(reflect.ValueOf(kept.service), reflect.ValueOf(*s)) {
			unknown = append(unknown, i)
		} else {
			lines[i] = kept.lines
		}
	}
	err := inParts(unknown, func(some []int) (err error) {
		for _, i := range some {
			if lines[i], err = serviceLines(services[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if w.services == nil {
		w.services = make(map[string]*writtenService, len(services))
	}
	for _, i := range unknown {
		w.services[services[i].Name] = &writtenService{services[i], lines[i]}
	}
	if len(w.services) > len(services) {
		w.forgetAllBut(services)
	}
	return lines, nil
}

func (w *Writer) forgetAllBut(services []Service) {
	kept := make(map[string]*writtenService, len(services))
	for i := range services {
		kept[services[i].Name] = w.services[services[i].Name]
	}
	w.services = kept
}

// serviceLines are the lines of a service as they are in a node file.
func serviceLines(s Service) ([]byte, error) {
	w := writeService(s)
	if w.unusual {
		return linesByLibrary(s)
	}
	return bytes.Clone(append(w.text, '\n')), nil
}

func writeService(s Service) yamlLines {
	w := yamlLines{text: []byte(serviceIndent + "- "), dash: true}
	w.object(objectOf(reflect.TypeFor[Service](), "", ""), reflect.ValueOf(s),
		len(serviceIndent+"- "))
	return w
}

// linesByLibrary is serviceLines of any service.
func linesByLibrary(s Service) ([]byte, error) {
	document := objectOf(reflect.TypeFor[Service](), "", "").documentOf(reflect.ValueOf(s))
	text, err := yaml.MarshalWithOptions([]any{document}, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	var lines []byte
	for line := range bytes.Lines(text) {
		lines = append(append(lines, serviceIndent[len(listIndent):]...), line...)
	}
	return bytes.Clone(lines), nil
}
