package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sextant/config"
)

// document is a lab file as it is written.
type document struct {
	Name     string      `yaml:"name"`
	Defaults defaultsDoc `yaml:"defaults"`
	Topology topologyDoc `yaml:"topology"`
	Run      []stepDoc   `yaml:"run"`
}

type defaultsDoc struct {
	Sysctls map[string]string `yaml:"sysctls"`
}

type topologyDoc struct {
	Nodes map[string]*nodeDoc `yaml:"nodes"`
	Links []linkDoc           `yaml:"links"`
}

type nodeDoc struct {
	Count     *int              `yaml:"count"`
	Addresses []string          `yaml:"addresses"`
	VIPs      []string          `yaml:"vips"`
	Announce  []string          `yaml:"announce"`
	Local     []string          `yaml:"local"`
	Sysctls   map[string]string `yaml:"sysctls"`
	Files     map[string]string `yaml:"files"`
	Exec      []Command         `yaml:"exec"`
	Processes []processDoc      `yaml:"processes"`
	Sextant   yaml.RawMessage   `yaml:"sextant"`
}

type processDoc struct {
	Name    string            `yaml:"name"`
	Command Command           `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	Ready   string            `yaml:"ready"`
	Restart bool              `yaml:"restart"`
}

type linkDoc struct {
	Endpoints []string `yaml:"endpoints"`
	Rate      string   `yaml:"rate"`
	Burst     string   `yaml:"burst"`
	Latency   string   `yaml:"latency"`
	MTU       int      `yaml:"mtu"`
	Weight    *uint32  `yaml:"weight"`

	Delay     string `yaml:"delay"`
	Jitter    string `yaml:"jitter"`
	Loss      string `yaml:"loss"`
	LossBurst string `yaml:"lossBurst"`
	Duplicate string `yaml:"duplicate"`
	Reorder   string `yaml:"reorder"`
	Queue     string `yaml:"queue"`
	Seed      uint64 `yaml:"seed"`
	Wire      string `yaml:"wire"`

	Forward directionDoc `yaml:"forward"`
	Back    directionDoc `yaml:"back"`
}

// directionDoc says what one direction of a link has of its own.
type directionDoc struct {
	Weight    *uint32 `yaml:"weight"`
	Delay     string  `yaml:"delay"`
	Jitter    string  `yaml:"jitter"`
	Loss      string  `yaml:"loss"`
	LossBurst string  `yaml:"lossBurst"`
	Duplicate string  `yaml:"duplicate"`
	Reorder   string  `yaml:"reorder"`
	Rate      string  `yaml:"rate"`
	Burst     string  `yaml:"burst"`
	Queue     string  `yaml:"queue"`
}

type stepDoc struct {
	Node    string  `yaml:"node"`
	Command Command `yaml:"command"`
}

// Load reads a lab file. What is wrong with its content comes as [Faults].
func Load(path string) (*Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the lab file: %w; give the path of one, or the name of an "+
			"example, such as quickstart", err)
	}
	return Parse(path, data)
}

// Parse reads the text of a lab file. The name of the file is used in errors,
// which are of type [Faults].
func Parse(file string, data []byte) (*Spec, error) {
	src := newSource(file, data)
	doc, err := decode(src, data)
	if err != nil {
		return nil, err
	}
	var r report
	spec := expand(&r, src, doc)
	validate(&r, spec)
	if err := r.err(src); err != nil {
		return nil, err
	}
	return spec, nil
}

// decode reads the document strictly.
func decode(src *source, data []byte) (doc *document, err error) {
	r := &report{}
	defer func() { // the library is known to panic on some malformed texts
		if cause := recover(); cause != nil {
			r.add("", "check indentation, brackets and quotes", "the text is not YAML (%v)", cause)
			doc, err = nil, r.err(src)
		}
	}()
	root := src.root(r, data)
	if root != nil {
		src.survey(r, "", root, reflect.TypeFor[document]())
	}
	doc = &document{}
	if len(r.faults) == 0 {
		err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(doc)
		if err != nil && !errors.Is(err, io.EOF) {
			src.decodeFault(r, err)
		}
	}
	return doc, r.err(src)
}

// root returns the one document of the file.
func (s *source) root(r *report, data []byte) ast.Node {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.decodeFault(r, err)
		return nil
	}
	var root ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			s.places["second"] = config.PlaceOf(first(doc.Body))
			r.add("second", "write one lab per file", "a second document starts here")
		default:
			root = doc.Body
		}
	}
	if root == nil {
		r.add("", `describe the lab, beginning with "name: NAME"`, "the file is empty")
	}
	return root
}
