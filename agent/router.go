package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/role"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/linux"
	"sextant/linux/rtnetlink"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
)

// router is the VRFs by which the kernel forwards. A nil router is a node without one.
type router struct {
	forwarder *kernelfib.Forwarder
	vrfs      []*vrf
	problem   string // why the tables are not what they are to be; "": they are
	changed   bool   // since next hops that nothing uses were removed
	kept      keptTables
}

// vrf is a table with its shadow.
type vrf struct {
	config.VRF
	table shadowvrf.Table
	drawn map[rib.Set]rib.Set // sets with their buckets drawn
	moved uint64              // routes that were changed, each after its shadow
}

// hashing is what the kernel is told so that a packet that comes back from a host is hashed as it
// was the first time: by addresses, protocol and ports of the packet itself, whatever a network
// card or a socket does with it.
var hashing = [][2]string{
	// 0x37
	{"net.ipv4.fib_multipath_hash_fields", "55"}, {"net.ipv6.fib_multipath_hash_fields", "55"},
	{"net.ipv4.fib_multipath_hash_policy", "3"}, {"net.ipv6.fib_multipath_hash_policy", "3"},
}

// openRouter reads the tables, with what an earlier agent wrote into them. The kernel stays as it
// is: lead follows when the node is about to run.
func openRouter(n *config.Node) (*router, error) {
	wanted := n.Routing.KernelVRFs()
	if len(wanted) == 0 {
		return nil, nil
	}
	forwarder, err := kernelfib.OpenForwarder()
	if err != nil {
		return nil, err
	}
	kernel := &router{forwarder: forwarder, changed: true}
	if err := kernel.readTables(wanted); err != nil {
		forwarder.Close()
		return nil, err
	}
	return kernel, nil
}

func (r *router) readTables(wanted []config.VRF) error {
	now := time.Now()
	for _, v := range wanted {
		x := &vrf{VRF: v, drawn: map[rib.Set]rib.Set{}}
		x.table.Keep = v.Shadow.Keep
		originals, shadows, err := r.held(v)
		if err != nil {
			return err
		}
		for prefix, set := range originals {
			x.table.Adopt(prefix, set, shadows[prefix], now)
			delete(shadows, prefix)
		}
		for prefix, set := range shadows {
			x.table.Adopt(prefix, rib.Set{}, set, now)
		}
		r.vrfs = append(r.vrfs, x)
	}
	return nil
}

// held returns the routes that the kernel has in the table of a VRF, and in its shadow.
func (r *router) held(v config.VRF) (originals, shadows map[netip.Prefix]rib.Set, err error) {
	if originals, err = r.forwarder.Read(uint32(v.Install)); err != nil {
		return nil, nil, err
	}
	shadows, err = r.forwarder.Read(uint32(v.Shadow.Table))
	return originals, shadows, err
}

// lead makes packets come to the tables. What an earlier agent wrote for VRFs that the node file no
// longer has goes.
func (r *routing) lead() error {
	if r.router == nil {
		if len(r.Store.Kept.Tables) == 0 {
			return nil
		}
		if err := kernelfib.Remove(); err != nil {
			return fmt.Errorf("routing: remove what an earlier agent wrote: %w", err)
		}
		r.Store.Kept.Tables = nil
		return nil
	}
	err := r.setHashing()
	if err == nil {
		err = r.takeTables()
	}
	if err != nil {
		return fmt.Errorf("routing: %w", err)
	}
	return nil
}

func (r *routing) setHashing() error {
	for _, setting := range hashing {
		is, err := linux.ReadSysctl(setting[0])
		if err == nil && is != setting[1] {
			err = linux.WriteSysctl(setting[0], setting[1])
			r.Log.Info("sysctl is set, so that strays go where their connections are",
				"sysctl", setting[0], "from", is, "to", setting[1])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *routing) takeTables() error {
	var leads []kernelfib.VRF
	var tables []int
	for _, v := range r.router.vrfs {
		tables = append(tables, v.Install, v.Shadow.Table)
		leads = append(leads, kernelfib.VRF{
			Table: uint32(v.Install), Shadow: uint32(v.Shadow.Table), SID: v.Shadow.SID,
			Interfaces: v.Interfaces,
		})
	}
	if err := r.router.forwarder.Lead(leads); err != nil {
		return err
	}
	for _, old := range r.Store.Kept.Tables {
		if slices.Contains(tables, old) {
			continue
		}
		if err := r.router.forwarder.Clear(uint32(old)); err != nil {
			return err
		}
	}
	r.Store.Kept.Tables = tables
	return nil
}

// want says what a source wants a route to be.
func (r *router) want(source config.RouteSource, c rib.Change) {
	if r == nil {
		return
	}
	for _, v := range r.vrfs {
		if v.Source == source && uint32(v.Table) == c.Table {
			v.table.Want(c.Prefix, v.draw(c.Set))
		}
	}
}

// maxDrawn bounds what is remembered to save time.
const maxDrawn = 1 << 12

// draw gives a set its buckets, and those of each to one of its hops.
func (v *vrf) draw(set rib.Set) rib.Set {
	if v.Buckets > 0 {
		set = set.WithBuckets(v.Buckets)
	}
	if set.Buckets() == 0 {
		return set
	}
	drawn, known := v.drawn[set]
	if !known {
		if len(v.drawn) >= maxDrawn {
			clear(v.drawn)
		}
		drawn = set.Draw()
		v.drawn[set] = drawn
	}
	return drawn
}

// dropUntold gives up the routes of an earlier agent of which a source, which has now told all, did
// not tell.
func (r *router) dropUntold(source config.RouteSource, told map[rib.Destination]rib.Set) {
	if r == nil {
		return
	}
	for _, v := range r.vrfs {
		if v.Source != source {
			continue
		}
		for _, row := range v.table.Entries() {
			if _, there := told[rib.Destination{Table: uint32(v.Table),
				Prefix: row.Prefix}]; !there {
				v.table.Want(row.Prefix, rib.Set{})
			}
		}
	}
}

// forwardRoutes makes the kernel's tables what they are to be. What fails is tried again at the
// next tick.
func (r *routing) forwardRoutes() {
	kernel := r.router
	if kernel == nil {
		return
	}
	problem, begun, moved := "", time.Now(), uint64(0)
	for _, v := range kernel.vrfs {
		if !v.table.Due(begun) {
			continue
		}
		n, err := kernel.forward(v, begun)
		if moved += n; err != nil {
			problem = fmt.Sprintf("vrf %s: %v", v.Name, err)
		}
	}
	if moved > 0 {
		r.Updates.Observe(time.Since(begun).Seconds())
		r.Log.Debug("routing: routes of the kernel changed", "routes", moved, "took",
			time.Since(begun))
	}
	if problem != "" && problem != kernel.problem {
		r.Log.Warn("routes of the kernel are not yet what they are to be; tried again soon",
			"problem", problem, "after", role.LearnInterval)
	}
	if kernel.problem != problem {
		kernel.problem = problem
		r.Rewarn()
	}
}

// forward carries out what is due: shadows first. A route whose shadow could not be written stays
// what it is.
func (r *router) forward(v *vrf, now time.Time) (moved uint64, err error) {
	copies, changes, removals := v.table.Plan(now)
	r.changed = true
	blocked := map[netip.Prefix]bool{}
	for stage, ops := range [][]shadowvrf.Op{copies, changes, removals} {
		ops = slices.DeleteFunc(ops, func(op shadowvrf.Op) bool { return blocked[op.Prefix] })
		failed, refused := r.forwarder.Apply(uint32(v.Install), uint32(v.Shadow.Table), ops)
		if refused != nil {
			return moved, refused
		}
		for i, op := range ops {
			if why := failed[i]; why != nil {
				blocked[op.Prefix] = true
				err = fmt.Errorf("route %s to %s: %w", op.Prefix, op.Set, why)
				continue
			}
			v.table.Done(op, now)
			if stage == 1 {
				moved++
			}
		}
	}
	v.moved += moved
	return moved, err
}

// tidy removes next hops that no route has any more.
func (r *router) tidy() error {
	if r == nil || !r.changed {
		return nil
	}
	inUse := map[rib.Set]bool{}
	for _, v := range r.vrfs {
		for set := range v.table.Sets() {
			inUse[set] = true
		}
	}
	r.changed = false
	return r.forwarder.Collect(inUse)
}

// tick does what is due by time: what failed, what was kept long enough, next hops that are of no
// use any more.
func (r *routing) tick() {
	r.restoreTables()
	r.forwardRoutes()
	if err := r.router.tidy(); err != nil {
		r.Log.Warn("next hops that nothing uses stay in the kernel", "error", err)
	}
}

// routesOfBGP tells the VRFs of BGP what the speaker knows.
func (r *routing) routesOfBGP(speaker *speaker) error {
	told := r.tables[config.SourceBGP]
	if told == nil || speaker == nil {
		return nil
	}
	table, err := speaker.Routes()
	if err != nil {
		return err
	}
	hops := map[rib.Destination][]rtnetlink.Hop{}
	for _, r := range table.Routes {
		if r.Draining || r.Weight == 0 || !r.Peer.IsValid() || !plainSID(r) {
			continue
		}
		to := rib.Destination{Prefix: r.Prefix}
		hop := rtnetlink.Hop{Weight: min(r.Weight, maxHopWeight), Mode: rtnetlink.Encap,
			Segments: []netip.Addr{r.SID}}
		if !slices.ContainsFunc(hops[to],
			func(
				h rtnetlink.Hop) bool {
				return h.Segments[0] == r.SID
			}) { // two peers may tell of one host
			hops[to] = append(hops[to], hop)
		}
	}
	var changes []rib.Change
	for to := range told.routes {
		if hops[to] == nil {
			changes = append(changes, rib.Change{Destination: to})
		}
	}
	for to, list := range hops {
		if set, ok := rib.NewSet(list, 0); ok && told.routes[to] != set {
			changes = append(changes, rib.Change{Destination: to, Set: set})
		}
	}
	r.routesTold(config.SourceBGP, changes, r.found.Startup.Settled)
	r.forwardRoutes()
	return nil
}

// maxHopWeight is what a next hop can have at most, in kernels before 6.12.
const maxHopWeight = 256

func plainSID(r discovery.Route) bool { return r.SID.Is6() && r.SID.IsGlobalUnicast() }
