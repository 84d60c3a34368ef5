package config

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goccy/go-yaml/ast"
)

// An edge may have ten thousand services, and a node file is mostly theirs. Where each service
// stands in lines of its own, they are read a few at a time on all processors, and those that the
// file read before had, too, not at all. Whatever is unusual about a text, or wrong with it, is
// left to the reader of whole files: it finds the same values, and says where faults are.

// parts are the lines of a file: those of each of the edge's services, and all others.
type parts struct {
	frame    []byte
	services [][]byte
}

const (
	leastParts   = 64 // services, from which on a file is read in parts
	partServices = 64 // that are read at once
)

// splitServices finds the services of a file; false: it is to be read whole.
func splitServices(text []byte) (p parts, ok bool) {
	const outside, inEdge, inServices, behind = 0, 1, 2, 3
	state, edgeIndent, itemIndent := outside, 0, 0
	start := 0 // of the item
	p.frame = make([]byte, 0, 1<<10)
	for at := 0; at < len(text); {
		line, begin := text[at:], at
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		at += len(line)
		content := bytes.TrimLeft(line, " ")
		indent := len(line) - len(content)
		content = bytes.TrimRight(content, " \n")
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		if !isUsual(content) {
			return p, false
		}
		switch {
		case state != inServices:
		case indent > itemIndent && start > 0:
			continue
		case bytes.HasPrefix(content, []byte("- ")) && (indent == itemIndent && start > 0 ||
			start == 0 && indent >= edgeIndent):
			if start > 0 {
				p.services = append(p.services, text[start:begin])
			}
			start, itemIndent = begin, indent
			continue
		case start == 0 || indent > edgeIndent:
			return p, false
		default:
			p.services = append(p.services, text[start:begin])
			state = behind
		}
		p.frame = append(p.frame, line...)
		switch {
		case state == outside && indent == 0 && string(content) == "edge:":
			state = inEdge
		case state == inEdge && indent == 0, state == outside && bytes.HasPrefix(content,
			[]byte("edge")):
			return p, false // an edge without services, or one that is written otherwise
		case state == inEdge && edgeIndent == 0:
			edgeIndent = indent
			fallthrough
		case state == inEdge:
			if indent == edgeIndent && string(content) == "services:" {
				state = inServices
			}
		}
	}
	if state == inServices && start > 0 {
		p.services = append(p.services, text[start:])
	}
	return p, len(p.services) >= leastParts
}

// isUsual reports whether a line means the same wherever its item stands: there are no anchors,
// aliases, tags, texts of several lines, or other documents.
func isUsual(content []byte) bool {
	if bytes.HasPrefix(content, []byte("---")) || bytes.HasPrefix(content, []byte("...")) {
		return false
	}
	lists, objects, quotes, apostrophes := 0, 0, 0, 0
	for _, octet := range content { // once: a file may have 100,000 lines
		switch octet {
		case '&', '*', '!', '|', '>', '%', '\t', '\r', '\\', '`', '@', '?':
			return false
		case '[':
			lists++
		case ']':
			lists--
		case '{':
			objects++
		case '}':
			objects--
		case '"':
			quotes++
		case '\'':
			apostrophes++
		}
	}
	return lists == 0 && objects == 0 && quotes%2 == 0 && apostrophes%2 == 0
}

// lastParts is the file that was read last in parts, without faults.
var lastParts atomic.Pointer[readParts]

// readParts are the services of a file by their lines.
type readParts struct {
	node     *Node
	services map[string]Service
}

// parseInParts reads a file without faults of which the services can be read on their own; nil:
// it is to be read whole.
func parseInParts(name string, data []byte, most readBounds, before *readParts) (*Node, parts) {
	if problem, _ := unreadable(data, most.bytes); problem != nil {
		return nil, parts{}
	}
	p, ok := splitServices(data)
	if !ok {
		return nil, p
	}
	services, values := readServices(p.services, before, most)
	if services == nil {
		return nil, p
	}
	d := newDecoder(name, p.frame, most)
	d.values, d.services = values, services
	n := d.node(p.frame)
	if n == nil || len(d.faults) > 0 || n.Edge == nil || len(n.Edge.Services) != len(services) {
		return nil, p
	}
	var valid *Node
	if before != nil && n.shareFrame(before.node) {
		valid = before.node
	}
	if len(validateAfter(n, valid)) > 0 {
		return nil, p
	}
	return n, p
}

// keepParts keeps what was read.
func keepParts(n *Node, p parts) {
	kept := &readParts{node: n, services: make(map[string]Service, len(p.services))}
	for i, lines := range p.services {
		kept.add(lines, &n.Edge.Services[i])
	}
	lastParts.Store(kept)
}

// add keeps a service. Those with keys are read anew each time: the keys are in files of their own.
func (r *readParts) add(lines []byte, s *Service) {
	if len(s.QUIC.Configs) == 0 {
		r.services[string(lines)] = *s
	}
}

// shareFrame makes a node share with another one all but the services, if it is equal.
func (n *Node) shareFrame(other *Node) bool {
	if other == nil || other.Edge == nil || len(n.HMACKeys())+len(other.HMACKeys()) > 0 ||
		n.CFLB != nil || n.PathSource != nil || n.SecretFile != "" {
		return false
	}
	a, edge := *n, *n.Edge
	b, others := *other, *other.Edge
	edge.Services, others.Services, a.Edge, b.Edge = nil, nil, &edge, &others
	if !equal(reflect.ValueOf(a), reflect.ValueOf(b)) {
		return false
	}
	others.Services = n.Edge.Services
	*n = b
	return true
}

// readServices reads all items that the file before does not have, and counts the values.
func readServices(items [][]byte, before *readParts, most readBounds) ([]Service, int) {
	services := make([]Service, len(items))
	var unknown []int
	for i, lines := range items {
		known := false
		if before != nil {
			services[i], known = before.services[string(lines)]
		}
		if !known {
			unknown = append(unknown, i)
		}
	}
	var values atomic.Int64
	err := inParts(unknown, func(some []int) error {
		read, ok := readSome(items, some, services, most)
		if values.Add(int64(read)); !ok {
			return errUnusual
		}
		return nil
	})
	if err != nil {
		return nil, 0
	}
	return services, int(values.Load())
}

// errUnusual says that a file is to be read whole.
var errUnusual = errors.New("the services can't be read in parts")

// inParts does something with a part of the numbers at a time, on all processors, until all are
// done or one fails.
func inParts(numbers []int, do func(some []int) error) error {
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var doing sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(numbers)+partServices-1)/partServices) {
		doing.Go(func() {
			for failure.Load() == nil {
				end := int(next.Add(partServices))
				begin := min(end-partServices, len(numbers))
				some := numbers[begin:min(end, len(numbers))]
				if len(some) == 0 {
					return
				}
				if err := do(some); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	doing.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// readSome reads the items of some numbers into the services.
func readSome(items [][]byte, some []int, services []Service, most readBounds) (int, bool) {
	values := 0
	var unusual []int
	for _, i := range some {
		var read Service
		if count, ok := readPlain(items[i], &read); ok {
			services[i], values = read, values+count
		} else {
			unusual = append(unusual, i)
		}
	}
	if len(unusual) == 0 {
		return values, true
	}
	count, ok := readTogether(items, unusual, services, most)
	return values + count, ok
}

// readTogether is readSome by the library.
func readTogether(items [][]byte, some []int, services []Service, most readBounds) (int, bool) {
	var text []byte
	for _, i := range some {
		text = append(text, items[i]...)
	}
	d := newDecoder("", text, most)
	list, ok := d.root(text).(*ast.SequenceNode)
	if !ok || len(d.faults) > 0 || len(list.Values) != len(some) {
		return 0, false
	}
	setting := objectOf(reflect.TypeFor[Edge](), "", "").find("services")
	into := reflect.New(reflect.TypeFor[[]Service]()).Elem()
	value{d, "", list}.read(setting, into)
	if into.Len() != len(some) || len(d.faults) > 0 {
		return 0, false
	}
	for place, i := range some {
		services[i] = into.Index(place).Interface().(Service)
	}
	return d.values, true
}
