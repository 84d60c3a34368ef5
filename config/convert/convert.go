// Package convert makes node files of edges from the rules of other load balancers: ipvsadm -S,
// keepalived.conf, and the part of haproxy.cfg that forwards TCP. What has no counterpart is noted,
// with its line; nothing is left out in silence.
package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"sextant/config"
	"sextant/packet/lists"
)

// Rules are what a foreign file says.
type Rules struct {
	Services []Service
	Notes    []Note
}

// Service is a virtual service.
type Service struct {
	Name     string // "": made from the endpoint
	Endpoint config.Endpoint
	Check    *Check // nil: none
	Servers  []Server
	Line     int
}

// Server is a real server of a service.
type Server struct {
	Name     string // "": made from the address
	Address  netip.Addr
	Port     uint16 // 0: that of the service
	Weight   int
	Draining bool // no new connections
	Line     int
}

// Check is a health check. Zero values are defaults.
type Check struct {
	Kind              config.CheckKind
	Port              uint16
	Path, Host        string
	Status            string // "200" or "200-399"
	Interval, Timeout time.Duration
	Rise, Fall        int
}

// Note is something that has no counterpart, or needs a look.
type Note struct {
	Line int // 0: the whole file
	Text string
}

// String writes the note as "line 3: ...".
func (n Note) String() string {
	if n.Line == 0 {
		return n.Text
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Text)
}

func (r *Rules) note(line int, format string, args ...any) {
	r.Notes = append(r.Notes, Note{line, fmt.Sprintf(format, args...)})
}

// Node is what a node file needs besides.
type Node struct {
	Name           string
	Block          string
	Infrastructure string
	Interface      string
	Source         string
	SecretFile     string
	SIDs           map[netip.Addr]SID // of real servers
}

// SID is that of a server, and the name of its backends; "": made from its address.
type SID struct {
	SID  netip.Addr
	Name string
}

// ReadSIDs reads a map of real servers to SIDs: an address, a SID and, if wanted, a name a line.
func ReadSIDs(file, text string) (map[netip.Addr]SID, error) {
	sids := map[netip.Addr]SID{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || len(words) > 3 {
			return nil, fmt.Errorf("%s:%d: want the address of a real server, its SID and, if "+
				"wanted, its name", file, number)
		}
		address, err := netip.ParseAddr(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no IP address", file, number, words[0])
		}
		sid, err := config.ParseSID(words[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		if _, twice := sids[address]; twice {
			return nil, fmt.Errorf("%s:%d: %s is given twice", file, number, address)
		}
		one := SID{SID: sid}
		if len(words) == 3 {
			one.Name = words[2]
		}
		sids[address] = one
	}
	return sids, nil
}

// Missing lists the real servers whose SIDs are not known.
func (r *Rules) Missing(sids map[netip.Addr]SID) []netip.Addr {
	missing := map[netip.Addr]bool{}
	for _, s := range r.Services {
		for _, server := range s.Servers {
			if _, known := sids[server.Address]; !known {
				missing[server.Address] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(missing), netip.Addr.Compare)
}

// YAML writes the node file of an edge with the services. Notes about services come to the rules'.
func (r *Rules) YAML(n Node) ([]byte, error) {
	if len(r.Services) == 0 {
		return nil, errors.New("no service is found in it; is it of this format?")
	}
	if missing := r.Missing(n.SIDs); len(missing) > 0 {
		texts := lists.Map(missing, netip.Addr.String)
		return nil, fmt.Errorf("the SIDs of these real servers are not known: %s; name them in "+
			"the "+
			"map, a line each: ADDRESS SID", strings.Join(texts, ", "))
	}
	names := map[string]bool{}
	services := lists.Map(r.Services, func(s Service) yaml.MapSlice {
		return r.service(s, n, names)
	})
	return yaml.MarshalWithOptions(yaml.MapSlice{
		{Key: "node", Value: n.Name},
		{Key: "domain", Value: yaml.MapSlice{{Key: "block", Value: n.Block},
			{Key: "infrastructure", Value: []string{n.Infrastructure}}}},
		{Key: "secretFile", Value: n.SecretFile},
		{Key: "edge", Value: yaml.MapSlice{
			{Key: "interfaces", Value: []yaml.MapSlice{{{Key: "name", Value: n.Interface}}}},
			{Key: "source", Value: n.Source}, {Key: "services", Value: services}}},
	}, yaml.IndentSequence(true))
}

func (r *Rules) service(s Service, n Node, names map[string]bool) yaml.MapSlice {
	name := unique(plainName(s.Name, nameOf(s.Endpoint)), names)
	item := yaml.MapSlice{{Key: "name", Value: name},
		{Key: "vip", Value: s.Endpoint.VIP.String()}}
	port := any(int(s.Endpoint.Port))
	if s.Endpoint.Port == config.AnyPort {
		port = "any"
	}
	item = append(item, yaml.MapItem{Key: "port", Value: port})
	if s.Endpoint.Protocol == config.UDP {
		item = append(item, yaml.MapItem{Key: "protocol", Value: "udp"})
	}
	if s.Check != nil {
		item = append(item, yaml.MapItem{Key: "check", Value: r.check(s)})
	}
	backends, taken := []yaml.MapSlice{}, map[netip.Addr]bool{}
	backendNames := map[string]bool{}
	for _, server := range s.Servers {
		sid := n.SIDs[server.Address]
		if taken[sid.SID] {
			r.note(server.Line, "service %s: server %s has the SID of another one; a server is "+
				"one "+
				"backend, its ports are the service's", name, server.Address)
			continue
		}
		taken[sid.SID] = true
		if server.Port != 0 && server.Port != s.Endpoint.Port {
			r.note(server.Line, "service %s: server %s listens on port %d, but gets packets as "+
				"clients sent them, to port %s; let it listen there", name, server.Address,
				server.Port, config.FormatPort(s.Endpoint.Port))
		}
		backends = append(backends, backend(server, sid, backendNames))
	}
	return append(item, yaml.MapItem{Key: "backends", Value: backends})
}

func backend(server Server, sid SID, names map[string]bool) yaml.MapSlice {
	name := cmp.Or(sid.Name, server.Name)
	item := yaml.MapSlice{
		{Key: "name", Value: unique(plainName(name, "server-"+dashed(server.Address)), names)},
		{Key: "sid", Value: sid.SID.String()}}
	if server.Weight != 1 {
		item = append(item, yaml.MapItem{Key: "weight", Value: server.Weight})
	}
	if server.Draining {
		item = append(item, yaml.MapItem{Key: "state", Value: "draining"})
	}
	return item
}

func (r *Rules) check(s Service) yaml.MapSlice {
	c := s.Check
	item := yaml.MapSlice{{Key: "kind", Value: string(c.Kind)}}
	add := func(key string, value any, given bool) {
		if given {
			item = append(item, yaml.MapItem{Key: key, Value: value})
		}
	}
	interval := c.Interval
	if interval == 0 && c.Timeout > 2*time.Second {
		interval = c.Timeout
	}
	if c.Timeout > interval && interval > 0 {
		r.note(s.Line, "the check's timeout of %v is longer than its interval; the interval is "+
			"taken", c.Timeout)
		c.Timeout = interval
	}
	if c.Timeout == 0 && interval > 0 && interval < time.Second {
		c.Timeout = interval
	}
	add("interval", interval.String(), interval > 0)
	add("timeout", c.Timeout.String(), c.Timeout > 0)
	add("rise", c.Rise, c.Rise > 0)
	add("fall", c.Fall, c.Fall > 0)
	add("port", int(c.Port), c.Port > 0 && c.Port != s.Endpoint.Port ||
		s.Endpoint.Protocol == config.UDP && c.Port > 0)
	add("path", c.Path, c.Path != "")
	add("host", c.Host, c.Host != "")
	add("status", c.Status, c.Status != "")
	return item
}

// nameOf makes a name of an endpoint: tcp-192-0-2-80-443.
func nameOf(e config.Endpoint) string {
	return fmt.Sprintf("%s-%s-%s", e.Protocol, dashed(e.VIP), config.FormatPort(e.Port))
}

func dashed(a netip.Addr) string {
	return strings.Trim(strings.NewReplacer(".", "-", ":", "-").Replace(a.String()), "-")
}

// plainName leaves of a name what a node file takes, or is another one.
func plainName(name, otherwise string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9',
			r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if plain = strings.TrimLeft(plain, "-_."); plain == "" {
		return otherwise
	}
	return plain[:min(len(plain), 60)]
}

func unique(name string, taken map[string]bool) string {
	one := name
	for n := 2; taken[one]; n++ {
		one = fmt.Sprintf("%s-%d", name, n)
	}
	taken[one] = true
	return one
}
