package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"sextant/config"
)

// proxy is a section of haproxy.cfg: defaults, frontend, backend or listen.
type proxy struct {
	kind, name string
	line       int
	mode       string // tcp or http; that of the defaults above
	lines      []directive
}

type directive struct {
	words []string // one at least
	line  int
}

// argument is the word behind the first; "": there is none.
func (d directive) argument() string {
	if len(d.words) < 2 {
		return ""
	}
	return d.words[1]
}

// HAProxy reads the sections of haproxy.cfg that forward TCP. Those in mode http are noted.
func HAProxy(text string) (*Rules, error) {
	r := &Rules{}
	sections := r.sections(text)
	byName := map[string]*proxy{}
	for _, p := range sections {
		if p.kind == "backend" || p.kind == "listen" {
			byName[p.name] = p
		}
	}
	for _, p := range sections {
		if p.kind != "frontend" && p.kind != "listen" {
			continue
		}
		if p.mode != "tcp" {
			r.note(p.line, "%s %s is in mode %s: requests inside of connections are not balanced "+
				"here; keep HAProxy behind the VIP for them", p.kind, p.name, p.mode)
			continue
		}
		if err := r.frontend(p, byName); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sections cuts the file; each proxy has the mode of the defaults above it, if none of its own.
func (r *Rules) sections(text string) (list []*proxy) {
	var now *proxy
	mode, number := "tcp", 0 // HAProxy's own default
	for line := range strings.Lines(text) {
		number++
		words := haproxyWords(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "global", "defaults", "frontend", "backend", "listen", "resolvers", "peers",
			"userlist",
			"cache", "program", "mailers", "ring", "http-errors":
			now = &proxy{kind: words[0], line: number, mode: mode}
			if len(words) > 1 {
				now.name = words[1]
			}
			if now.kind == "defaults" {
				mode, now.mode = "tcp", "tcp"
			}
			list = append(list, now)
			continue
		}
		if now == nil {
			continue
		}
		if words[0] == "mode" && len(words) > 1 {
			if now.mode = words[1]; now.kind == "defaults" {
				mode = words[1]
			}
			continue
		}
		now.lines = append(now.lines, directive{words, number})
	}
	return list
}

// haproxyWords are the words of a line without its comment; a backslash keeps a space.
func haproxyWords(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	const space = "\x00"
	words := strings.Fields(strings.ReplaceAll(line, `\ `, space))
	for i, w := range words {
		words[i] = strings.Trim(strings.ReplaceAll(w, space, " "), `"'`)
	}
	return words
}

// frontend makes a service of each address that a frontend binds.
func (r *Rules) frontend(p *proxy, byName map[string]*proxy) error {
	servers := p
	for _, d := range p.lines {
		switch d.words[0] {
		case "default_backend":
			if len(d.words) < 2 || byName[d.words[1]] == nil {
				return fmt.Errorf("line %d: there is no such backend", d.line)
			}
			servers = byName[d.words[1]]
		case "use_backend", "acl", "tcp-request", "http-request":
			r.note(d.line, "%s: choices by content are not carried over", d.words[0])
		}
	}
	if servers == p && p.kind == "frontend" {
		r.note(p.line, "frontend %s has no default_backend, and is left out", p.name)
		return nil
	}
	list, check, err := r.servers(servers)
	if err != nil {
		return err
	}
	binds := 0
	for _, d := range p.lines {
		if d.words[0] != "bind" || len(d.words) < 2 {
			continue
		}
		if slices.Contains(d.words, "ssl") {
			r.note(d.line, "bind with ssl: TLS ends at the servers here; this address is left out")
			continue
		}
		for at := range strings.SplitSeq(d.words[1], ",") {
			e, err := bindAddress(at)
			if err != nil {
				return fmt.Errorf("line %d: %w", d.line, err)
			}
			if !e.VIP.IsValid() || e.VIP.IsUnspecified() {
				r.note(d.line, "bind %s: write the VIP in place of all addresses; it is left out",
					at)
				continue
			}
			name := p.name
			if binds++; binds > 1 {
				name = fmt.Sprintf("%s-%d", p.name, binds)
			}
			s := Service{Name: name, Endpoint: e, Line: d.line, Servers: slices.Clone(list)}
			if check != nil {
				c := *check
				s.Check = &c
			}
			r.Services = append(r.Services, s)
		}
	}
	return nil
}

// bindAddress reads ADDRESS:PORT, [ADDRESS]:PORT, :PORT or *:PORT.
func bindAddress(text string) (config.Endpoint, error) {
	for _, family := range []string{"ipv4@", "ipv6@"} {
		text = strings.TrimPrefix(text, family)
	}
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return config.Endpoint{}, fmt.Errorf("bind %s names no port", text)
	}
	port, err := strconv.ParseUint(text[colon+1:], 10, 16)
	if err != nil || port == 0 {
		return config.Endpoint{}, fmt.Errorf("bind %s: %q is no port; a service has one, or any",
			text, text[colon+1:])
	}
	e := config.Endpoint{Protocol: config.TCP, Port: uint16(port)}
	address := strings.Trim(text[:colon], "[]")
	if address == "" || address == "*" {
		return e, nil
	}
	if e.VIP, err = netip.ParseAddr(address); err != nil {
		return e, fmt.Errorf("bind %s: %q is no IP address in digits", text, address)
	}
	return e, nil
}

// servers reads the servers of a section, and their check.
func (r *Rules) servers(p *proxy) (list []Server, check *Check, err error) {
	c := Check{Kind: config.CheckTCP}
	for _, d := range p.lines {
		switch d.words[0] {
		case "balance":
			r.noteScheduler(d.line, d.argument())
		case "stick-table", "stick":
			r.note(d.line, "%s is not carried over: connections of one client go to several "+
				"servers",
				d.words[0])
		case "option":
			r.option(d, &c)
		case "http-check":
			r.httpCheck(d, &c)
		case "timeout":
			if len(d.words) == 3 && d.words[1] == "check" {
				if c.Timeout, err = haproxyTime(d.words[2]); err != nil {
					return nil, nil, fmt.Errorf("line %d: %w", d.line, err)
				}
			}
		}
	}
	defaults := []string{}
	checked := false
	for _, d := range p.lines {
		switch d.words[0] {
		case "default-server":
			defaults = append(defaults, d.words[1:]...)
		case "server":
			if len(d.words) < 3 {
				return nil, nil, fmt.Errorf("line %d: want a name and an address", d.line)
			}
			s, on, err := r.server(d, slices.Concat(defaults, d.words[3:]), &c)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", d.line, err)
			}
			checked = checked || on
			list = append(list, s)
		case "server-template":
			r.note(d.line, "server-template is not carried over; write a line for each server")
		}
	}
	if checked {
		check = &c
	}
	return list, check, nil
}

// option reads what an option says of checks.
func (r *Rules) option(d directive, c *Check) {
	switch d.argument() {
	case "httpchk":
		c.Kind = config.CheckHTTP
		for _, word := range d.words[2:] {
			if strings.HasPrefix(word, "/") {
				c.Path = word
			}
		}
	case "tcp-check", "tcplog", "dontlognull", "redispatch", "tcpka", "clitcpka", "srvtcpka":
	default:
		r.note(d.line, "option %s is not carried over", d.argument())
	}
}

func (r *Rules) httpCheck(d directive, c *Check) {
	for i, word := range d.words {
		if i+1 == len(d.words) {
			break
		}
		switch next := d.words[i+1]; word {
		case "uri":
			c.Path = next
		case "status":
			c.Status = next
		case "ver", "meth", "expect", "send", "hdr":
			if word == "hdr" && strings.EqualFold(next, "host") && i+2 < len(d.words) {
				c.Host = d.words[i+2]
			}
		}
	}
}

// server reads a line of a server, and says whether it is checked.
func (r *Rules) server(d directive, words []string, c *Check) (Server, bool, error) {
	s := Server{Name: d.words[1], Weight: 1, Line: d.line}
	e, err := endpointOf(d.words[2], config.TCP)
	if err != nil {
		return s, false, fmt.Errorf("server %s: %w", s.Name, err)
	}
	s.Address, s.Port = e.VIP, e.Port
	on := false
	for i := 0; i < len(words); i++ {
		value := func() string {
			if i+1 < len(words) {
				i++
				return words[i]
			}
			return ""
		}
		switch word := words[i]; word {
		case "check":
			on = true
		case "no-check":
			on = false
		case "inter":
			c.Interval, err = haproxyTime(value())
		case "rise":
			c.Rise, err = strconv.Atoi(value())
		case "fall":
			c.Fall, err = strconv.Atoi(value())
		case "weight":
			s.Weight, err = strconv.Atoi(value())
		case "port":
			var port uint64
			port, err = strconv.ParseUint(value(), 10, 16)
			c.Port = uint16(port)
		case "disabled":
			s.Weight = 0
		case "backup":
			r.note(d.line, "server %s is a backup: it gets no new connections until you undrain it",
				s.Name)
			s.Weight = 0
		case "send-proxy", "send-proxy-v2", "ssl":
			r.note(d.line, "%s of server %s is not carried over: packets are as clients sent them",
				word, s.Name)
		case "maxconn", "minconn", "maxqueue", "slowstart", "cookie", "track", "verify", "source",
			"fastinter", "downinter", "on-marked-down", "on-error", "observe", "error-limit":
			if text := value(); word == "maxconn" {
				r.note(d.line, "maxconn %s of server %s is not carried over; a host's acceptance "+
					"policy bounds connections", text, s.Name)
			}
		default:
			r.note(d.line, "%s of server %s is not carried over", word, s.Name)
		}
		if err != nil {
			return s, on, fmt.Errorf("server %s: %w", s.Name, err)
		}
	}
	s.quiesce()
	return s, on, nil
}

// haproxyTime reads a time as HAProxy has it: milliseconds without a unit.
func haproxyTime(text string) (time.Duration, error) {
	if _, err := strconv.Atoi(text); err == nil {
		text += "ms"
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no time", text)
	}
	return d, nil
}
