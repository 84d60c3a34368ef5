package config

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
)

// Writer writes the canonical texts of nodes of which each follows from the one before. It keeps
// the text of each service of an edge, so that a change of one among thousands costs one. The zero
// value is ready. It is for one goroutine.
type Writer struct {
	services map[string]writtenService // by name
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
		return Marshal(n)
	}
	edge, frame := *n.Edge, *n
	edge.Services, frame.Edge = []Service{{Name: markName}}, &edge
	text, err := Marshal(&frame)
	if err != nil {
		return nil, err
	}
	before, after, err := aroundMark(text)
	if err != nil {
		return nil, err
	}
	services, err := w.writeServices(n.Edge.Services)
	if err != nil {
		return nil, fmt.Errorf("write services of node %q as YAML: %w", n.Name, err)
	}
	return bytes.Join([][]byte{before, services, after}, nil), nil
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

// writeServices writes all services, and keeps what it wrote in place of what was kept.
func (w *Writer) writeServices(services []Service) ([]byte, error) {
	written := make([]writtenService, len(services))
	var unknown []int
	for i := range services {
		s, known := &services[i], false
		if written[i], known = w.services[s.Name]; !known || !sharedBy(&written[i].service, s) &&
			!equal(reflect.ValueOf(written[i].service), reflect.ValueOf(*s)) {
			unknown = append(unknown, i)
		}
	}
	err := inParts(unknown, func(some []int) error {
		for _, i := range some {
			lines, err := serviceLines(services[i])
			if err != nil {
				return err
			}
			written[i] = writtenService{services[i], lines}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := make(map[string]writtenService, len(services))
	var text bytes.Buffer
	for i := range services {
		kept[services[i].Name] = written[i]
		text.Write(written[i].lines)
	}
	w.services = kept
	return text.Bytes(), nil
}

// serviceLines are the lines of a service as they are in a node file.
func serviceLines(s Service) ([]byte, error) {
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
