package linkstate

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sextant/packet/srv6"
	"sextant/te/topology"
)

// ISISDatabase is what FRR's isisd prints of its database.
type ISISDatabase struct {
	Text      []byte // "show isis database detail"
	Hostnames []byte // "show isis hostname"
}

// ISIS makes a topology of the database of IS-IS. Of a router that speaks several topologies (RFC
// 5120) that of IPv6 counts. Routers are called by their host names.
func ISIS(name string, db ISISDatabase, block srv6.Block) (*topology.Graph, []string, error) {
	r := isisReader{domain: domain{nodes: map[string]*node{}}, prefixes: locators{block: block}}
	r.hosts = hostsOf(db.Hostnames)
	for line := range strings.Lines(string(db.Text)) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	r.collect()
	g, ignored, err := r.domain.built(name, &r.prefixes)
	return g, append(r.ignored, ignored...), err
}

// isisReader reads line by line.
type isisReader struct {
	domain
	prefixes locators
	hosts    map[string]string // names by system id
	ignored  []string
	level    string
	told     []*told
	router   *told // nil: lines belong to none
	last     *link
}

// told is what a router tells of itself in one level, in as many LSPs as it takes; or what is told
// of a LAN by one of its routers, in the same words.
type told struct {
	level, router string
	multi         bool   // it tells of several topologies
	links         []link // of the only topology, or of that of IPv4
	links6        []link // of that of IPv6
}

var (
	lspLine = regexp.MustCompile(
		`^(\S+)\.([0-9a-f]{2})-[0-9a-f]{2}\s.*?\s(\(?\d+\)?)\s+\d/\d/(\d)$`)
	reachLine = regexp.MustCompile(
		`^  (MT |Extended )Reachability: ((?:[0-9a-f]{4}\.){2}[0-9a-f]{4})\.([0-9a-f]{2}) ` +
			`\(Metric: (\d+)\)(?: (\S+))?`)
	prefixLine = regexp.MustCompile(`^  (?:MT )?IPv6 Reachability: (\S+) \(Metric: \d+\)`)
	valueLine  = regexp.MustCompile(`^    (?:\S+ )?(Maximum Bandwidth|Average Link Delay): (\S+) `)
	hostLine   = regexp.MustCompile(
		`(?m)^\s*(?:\d|\*)\s+([0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})\s+(\S+)\s*$`)
	systemID = regexp.MustCompile(`^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$`)
)

func hostsOf(text []byte) map[string]string {
	hosts := map[string]string{}
	for _, match := range hostLine.FindAllStringSubmatch(string(text), -1) {
		hosts[match[1]] = match[2]
	}
	return hosts
}

func (r *isisReader) line(text string) {
	if level, ok := strings.CutPrefix(text, "IS-IS "); ok {
		r.level, r.router = level, nil
		return
	}
	if match := lspLine.FindStringSubmatch(text); match != nil {
		r.begin(match[1], match[2], match[3], match[4])
		return
	}
	if r.router == nil {
		return
	}
	switch match := reachLine.FindStringSubmatch(text); {
	case match != nil:
		r.reach(match[1], match[2], match[3], match[4], match[5])
	case strings.HasPrefix(text, "  MT Router Info: "):
		r.router.multi = true
	default:
		r.about(text)
	}
}

// begin begins an LSP, of a router or a LAN. One without time left is being withdrawn.
func (r *isisReader) begin(name, pseudonode, lifetime, overload string) {
	r.router, r.last = nil, nil
	if lifetime == "0" || strings.HasPrefix(lifetime, "(") {
		return
	}
	router, ok := r.routerOf(name)
	if !ok {
		r.ignored = append(r.ignored, fmt.Sprintf(
			"LSP of %s: not one router is known by this name, which isisd cuts off behind %d "+
				"letters; write \"no hostname dynamic\" there", name, hostLetters))
		return
	}
	lan := pseudonode != "00"
	if lan {
		router += "." + pseudonode
	}
	i := slices.IndexFunc(r.told, func(t *told) bool {
		return t.level == r.level &&
			t.router == router
	})
	if i < 0 {
		i = len(r.told)
		r.told = append(r.told, &told{level: r.level, router: router})
	}
	if r.router = r.told[i]; lan {
		r.called(router, true)
		return
	}
	r.meet(router)
	r.nodes[router].noTransit = r.nodes[router].noTransit || overload == "1"
}

// meet makes a router known.
func (r *isisReader) meet(router string) {
	if r.nodes[router] == nil {
		r.nodes[router] = &node{name: cmp.Or(r.hosts[router], router)}
	}
}

// hostLetters is how much of a host name isisd prints in the id of an LSP.
const hostLetters = 14

// routerOf finds the system id of the router whose LSP has a name.
func (r *isisReader) routerOf(name string) (id string, ok bool) {
	if systemID.MatchString(name) {
		return name, true
	}
	for router, host := range r.hosts {
		if host[:min(len(host), hostLetters)] == name {
			if ok {
				return "", false
			}
			id, ok = router, true
		}
	}
	return id, ok
}

// reach takes a link.
func (r *isisReader) reach(kind, router, pseudonode, metric, of string) {
	r.last = nil
	weight, err := strconv.ParseUint(metric, 10, 24)
	list := &r.router.links
	if kind == "MT " {
		list = &r.router.links6
	}
	if err != nil || kind == "MT " && of != "ipv6-unicast" || router == r.router.router &&
		pseudonode == "00" {
		return
	}
	l := link{from: r.router.router, to: router}
	l.Weight = max(1, uint32(weight))
	switch {
	case pseudonode != "00":
		l.to += "." + pseudonode
		r.called(l.to, true)
	case !r.nodes[l.from].pseudo:
		r.meet(router)
	}
	*list = append(*list, l)
	r.last = &(*list)[len(*list)-1]
}

// about takes what is said of the last link, and prefixes.
func (r *isisReader) about(text string) {
	if match := prefixLine.FindStringSubmatch(text); match != nil {
		if p, err := netip.ParsePrefix(match[1]); err == nil {
			r.prefixes.add(r.router.router, p)
		}
		return
	}
	match := valueLine.FindStringSubmatch(text)
	if r.last == nil || match == nil {
		return
	}
	switch number, err := strconv.ParseFloat(match[2], 32); {
	case err != nil:
	case match[1] == "Maximum Bandwidth":
		r.last.CapacityKbps = kbps(float32(number))
	case number >= 0 && number < 1<<24: // 24 bits (RFC 8570)
		r.last.Delay = int64(number)
	}
}

// collect takes the links of all routers. What tells parallel ones apart is their order.
func (r *isisReader) collect() {
	for _, t := range r.told {
		links := t.links
		if t.multi {
			links = t.links6
		}
		count := map[string]int{}
		for _, l := range links {
			l.near = fmt.Sprintf("%06d", count[l.to])
			l.far = l.near
			count[l.to]++
			if l.Weight == noMetric {
				r.ignored = append(r.ignored, l.unused())
				continue
			}
			r.links = append(r.links, l)
		}
	}
}
