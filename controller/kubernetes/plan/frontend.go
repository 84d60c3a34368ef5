package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/config"
)

// A Frontend is an endpoint that clients connect to, with those who may serve it.
type Frontend struct {
	Name string // at the edges
	config.Endpoint
	Options
	Groups []Group
}

// Options are what an object says of a frontend beside its endpoints; zeros are defaults.
type Options struct {
	Candidates  int
	MaxBackends int
	SlowStart   float64 // seconds
	// Together gives no endpoint new connections while one of several groups has none that takes
	// packets: weights hold from the first connection on.
	Together bool
	// NearZones gives new connections to endpoints of the edge's zone, if there are some.
	NearZones bool
}

// A Group is the endpoints of one Service, with its share of new connections.
type Group struct {
	Weight    int // of all its endpoints together; 0 of the only group: each has its own
	Endpoints []Endpoint
}

// returnHold is how long a new backend gets no new connection, in seconds. Edges are told of it
// within milliseconds of each other, unless one is away; but pods come one after another, and those
// that come within this time are up together, so that chains have room for who comes next.
const returnHold = 3.0

// groupHold is the same where several groups have weights, which hold from then on: with one
// candidate chains fill more slowly.
const groupHold = 0.2

// Result is a frontend as edges in each zone are told of it, and who is missing.
type Result struct {
	Name    string
	At      config.Endpoint
	Zones   map[string]api.Declared // by the edge's zone; "" for those of no or another zone
	Missing []Missing
	Serving int  // endpoints that get new connections
	Leaving int  // endpoints that only keep their connections
	Waits   bool // see Options.Together
}

// For is what an edge of a zone is told.
func (r Result) For(zone string) api.Declared {
	if d, ok := r.Zones[zone]; ok {
		return d
	}
	return r.Zones[""]
}

// Build decides on a frontend. Weights of groups are kept to within rounding, whatever the number
// of endpoints in each.
func (f Frontend) Build(where Where) Result {
	r := Result{Name: f.Name, At: f.Endpoint, Zones: map[string]api.Declared{}}
	var all []placed
	seen := map[netip.Addr]int{}
	groups := make([][]placed, len(f.Groups))
	for i, g := range f.Groups {
		var missing []Missing
		groups[i], missing = backends(g.Endpoints, f.Endpoint, where)
		r.Missing = append(r.Missing, missing...)
	}
	resort(groups)
	if r.Waits = f.Together && f.lacks(groups); r.Waits {
		for _, g := range groups {
			for i := range g {
				g[i].State = config.Draining
			}
		}
	}
	for i, g := range f.Groups {
		for _, p := range weighed(groups[i], g.Weight, f.Groups) {
			if i, ok := seen[p.sid]; ok { // in two Services
				all[i].Weight = min(all[i].Weight+p.Weight, maxWeight)
				continue
			}
			seen[p.sid] = len(all)
			all = append(all, p)
		}
	}
	apart(all)
	zones := map[string]bool{"": true}
	for _, p := range all {
		if p.State == config.Up {
			r.Serving++
		} else {
			r.Leaving++
		}
		if f.NearZones && p.State == config.Up {
			for _, z := range nearTo(p) {
				zones[z] = true
			}
		}
	}
	for zone := range zones {
		r.Zones[zone] = f.declare(all, zone)
	}
	return r
}

// lacks reports whether one of several groups has endpoints that are ready, and none that takes
// packets.
func (f Frontend) lacks(groups [][]placed) bool {
	for i, g := range f.Groups {
		if len(f.Groups) > 1 && g.Weight > 0 &&
			slices.ContainsFunc(g.Endpoints, func(e Endpoint) bool {
				return e.State == config.Up
			}) && !slices.ContainsFunc(groups[i], func(p placed) bool {
			return p.State == config.Up
		}) {
			return true
		}
	}
	return false
}

// resort gives new connections to those that terminate and still serve, if no endpoint is ready.
func resort(groups [][]placed) {
	for _, g := range groups {
		if slices.ContainsFunc(g, func(p placed) bool { return p.State == config.Up }) {
			return
		}
	}
	for _, g := range groups {
		for i := range g {
			if g[i].LastResort {
				g[i].State = config.Up
			}
		}
	}
}

// apart gives endpoints of several groups that have one name others.
func apart(all []placed) {
	count := map[string]int{}
	for _, p := range all {
		count[p.Name]++
	}
	for i := range all {
		if p := &all[i]; count[p.Name] > 1 {
			p.Name = agentName(p.Name + "@" + p.Address.String())
		}
	}
}

// nearTo are the zones whose edges should send to an endpoint.
func nearTo(p placed) []string {
	if len(p.ForZones) > 0 {
		return p.ForZones
	}
	if p.Zone != "" {
		return []string{p.Zone}
	}
	return nil
}

// weighed shares a group's weight among its endpoints.
func weighed(taken []placed, weight int, groups []Group) []placed {
	if len(groups) == 1 {
		return taken
	}
	up := 0
	for _, p := range taken {
		if p.State == config.Up {
			up += p.Weight
		}
	}
	scale := scaleOf(groups)
	for i := range taken {
		p := &taken[i]
		switch {
		case p.State != config.Up:
		case weight == 0:
			p.State = config.Draining
		default:
			p.Weight = max(1, (p.Weight*weight*scale+up/2)/up)
		}
	}
	return taken
}

// scaleOf is by how much weights of groups are raised, so that the largest share of an endpoint is
// near the largest weight, and small shares are not lost by rounding.
func scaleOf(groups []Group) int {
	largest := 1
	for _, g := range groups {
		largest = max(largest, g.Weight)
	}
	return max(1, maxWeight/largest)
}

func (f Frontend) declare(all []placed, zone string) api.Declared {
	hold, protocol := returnHold, f.Protocol
	if len(f.Groups) > 1 {
		hold = groupHold
	}
	vip, port := f.VIP, f.Port
	d := api.Declared{Name: f.Name, ServiceSpec: api.ServiceSpec{VIP: &vip, Port: &port,
		Protocol:       &protocol,
		ContinuitySpec: api.ContinuitySpec{ReturnHoldSeconds: &hold}},
		Backends: make([]api.DeclaredBackend, 0, len(all))}
	if f.Candidates > 0 {
		d.Candidates = &f.Candidates
	}
	if f.SlowStart > 0 {
		d.SlowStartSeconds = &f.SlowStart
	}
	if size := tableFor(len(all), f.MaxBackends); size > 0 {
		d.MaxBackends = &size
	}
	for _, p := range all {
		sid, weight, state := p.sid, p.Weight, p.State
		if zone != "" && state == config.Up && !slices.Contains(nearTo(p), zone) {
			state = config.Draining
		}
		d.Backends = append(d.Backends, api.DeclaredBackend{Name: p.Name,
			BackendSpec: api.BackendSpec{SID: &sid, Weight: &weight, State: &state}})
	}
	return d
}

// Sizes of tables, in backends: steps, so that a table changes seldom.
var tableSizes = []int{64, 256, 1024, 4096, maxBackends}

// tableFor is for how many backends a table is made: what the object says, or else a step above
// those there are. 0 is the default, which is the first step.
func tableFor(backends, said int) int {
	if said > 0 {
		return min(said, tableSizes[len(tableSizes)-1])
	}
	if backends <= tableSizes[0] {
		return 0
	}
	for _, size := range tableSizes {
		if backends <= size {
			return size
		}
	}
	return tableSizes[len(tableSizes)-1]
}

// FrontendName is what a frontend is called at the edges. It begins with the prefix of the cluster,
// by which its services are known there.
func FrontendName(prefix, namespace, object string, e config.Endpoint) string {
	family := "4"
	if e.VIP.Is6() {
		family = "6"
	}
	return agentName(fmt.Sprintf("%s.%s.%s.%d-%s%s", prefix, namespace, object, e.Port, e.Protocol,
		family))
}

// agentName makes a name that agents take of any text.
func agentName(text string) string {
	return shortened(strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9',
			strings.ContainsRune("-_.", r):
			return r
		case r == ':':
			return '-'
		}
		return '_'
	}, text), "-_."))
}

// shortened keeps the beginning of a long name, and what tells it from others.
func shortened(name string) string {
	if len(name) <= maxName && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := hex.EncodeToString(sum[:])[:12]
	if len(name) > maxName-len(mark)-1 {
		name = name[:maxName-len(mark)-1]
	}
	return strings.TrimLeft(name+"-"+mark, "-_.")
}
