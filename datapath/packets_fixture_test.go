package datapath

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The programs on the tables of package packettest, from which the Go model is tested too. The
// expected packets come from an independent library.

// way is where all routes lead.
type way struct {
	gateway string
	outcome string
}

var (
	wayBack      = way{gateway: "fd00:5e:1::2", outcome: "transmitted"}
	wayElsewhere = way{gateway: "fd00:5e:2::2", outcome: "redirected"}
	// a neighbour that is not resolved
	wayUnknown = way{gateway: "fd00:5e:1::99", outcome: "handed"}
)

// lead makes all routes to SIDs lead there. The programs are told.
func (w way) lead(t testing.TB, told ...interface{ ForgetNextHops() error }) {
	t.Helper()
	for _, prefix := range []string{"fcbb:bb00::/32", "fd00:c0de::/32"} {
		addRoute(t, prefix, w.gateway, 0)
	}
	for _, p := range told {
		must(t, p.ForgetNextHops())
	}
}

// out is what surrounds a packet that came in as given and leaves this way.
func (w way) out(in packettest.Link) packettest.Link {
	switch w {
	case wayBack:
		in.Src, in.Dst = nearMAC, routerMAC
	case wayElsewhere:
		in.Src, in.Dst, in.VLANs = farMAC, farRouterMAC, nil
	}
	return in
}

// subject is a program whose counters are watched.
type subject struct {
	*runner
	tables *collection
	host   bool // what is too big to be passed on, the kernel answers
}

// counts returns all counters of drops and outcomes.
func (s subject) counts(t testing.TB) map[string]uint64 {
	t.Helper()
	drops, err := s.tables.Drops()
	must(t, err)
	outcomes, err := s.tables.Outcomes()
	must(t, err)
	all := map[string]uint64{}
	for _, c := range slices.Concat(drops, outcomes) {
		all[c.Name] = c.Packets
	}
	return all
}

// verdicts are what the program returns with an outcome; with all others it drops.
var verdicts = map[string]uint32{
	"passed": xdpPass, "handed": xdpPass, "taken": xdpPass, "translated": xdpPass,
	"learned": xdpPass,
	"echoed":  xdpTransmit, "too_big_answered": xdpTransmit, "transmitted": xdpTransmit,
	"redirected": xdpRedirect,
}

// told are the reasons to drop a packet of which the sender may be told: by the kernel on a host,
// by the edge, and by
// the kernel about what a router said to the edge.
var told = map[string][]uint32{"packet_too_big": {}, "hop_limit": {xdpTransmit},
	"below_min_mtu": {xdpTransmit, xdpPass}}

// process runs the program, and returns the one counter that rose, and the frame. It fails if the
// verdict is not the one of that counter.
func (s subject) process(t testing.TB, frame []byte) (outcome string, after []byte) {
	t.Helper()
	before := s.counts(t)
	verdict, after := s.run(t, frame)
	for name, count := range s.counts(t) {
		switch count - before[name] {
		case 0:
			continue
		case 1:
			if outcome == "" {
				outcome = name
				continue
			}
		}
		t.Errorf("%s counted %d, besides %q\nframe %x", name, count-before[name], outcome, frame)
	}
	want, ok := verdicts[outcome]
	if !ok {
		want = xdpDrop
	}
	if may := told[outcome]; s.host && may != nil {
		want = xdpPass
	} else if slices.Contains(may, verdict) {
		want = verdict
	}
	if verdict != want {
		t.Errorf("counted as %q, but the program returned %d\nframe %x", outcome, verdict, frame)
	}
	return outcome, after
}

// tabled are the outcomes that the shared tables name otherwise.
var tabled = map[string]string{"passed": "pass", "redirected": "redirect", "taken": "take"}

// check processes the frame of a shared table. One that is passed is unchanged, one that is taken
// has lost what was around it, and one that is redirected has got something around it.
func (s subject) check(t testing.TB, test packettest.Case) {
	t.Helper()
	if len(test.Frame) < 14 {
		return // the kernel's test run refuses frames without an Ethernet header
	}
	outcome, after := s.process(t, test.Frame)
	if name, ok := tabled[outcome]; ok {
		outcome = name
	}
	if outcome != test.Want {
		t.Errorf("%s: %s, want %s", test.Name, outcome, test.Want)
		return
	}
	ok := true
	switch outcome {
	case "pass":
		ok = bytes.Equal(after, test.Frame)
	case "take":
		ok = bytes.Equal(after[:12], test.Frame[:12]) && bytes.HasSuffix(test.Frame, after[14:])
	}
	if !ok {
		t.Errorf("%s: %s as %x\nframe %x", test.Name, outcome, after, test.Frame)
	}
}

const tableBuckets = 64

// tableEdge is an edge with the services of the shared tables, with a program for each side.
func tableEdge(t testing.TB, w *world, encapsulation Encapsulation,
	changes ...func(*EdgeConfig)) *Edge {
	t.Helper()
	config := EdgeConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
			Source:         packettest.EdgeAddr,
		},
		Encapsulation: encapsulation,
		EdgeOuter:     packettest.EdgeOuter(t, 63),
		Shadow:        packettest.ShadowSID,
		LastOffer:     0xe046,
		AnswerRate:    1e9,
		Interfaces:    []EdgeInterface{{Side: External}, {Side: Internal}, {Side: Mixed}},
	}
	for _, change := range changes {
		change(&config)
	}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(e.Close)
	for i, key := range []ServiceKey{
		{VIP: packettest.VIP4, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Protocol: 17}, {VIP: packettest.VIP4, Port: 53, Protocol: 17},
	} {
		must(t, e.SetService(key, uint32(i), tableBuckets))
	}
	w.openPorts(t, e.collection)
	return e
}

func (w *world) openPorts(t testing.TB, c *collection) {
	t.Helper()
	must(t, c.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native},
		{On: "far", Index: w.far, Mode: Native}}))
}

// serveAll gives all buckets of all services one chain, of which the first are current.
func serveAll(t testing.TB, e *Edge, candidates int, ids ...uint16) {
	t.Helper()
	serveAllWithShadow(t, e, 0, candidates, ids...)
}

// serveAllWithShadow is serveAll with an previous owner.
func serveAllWithShadow(t testing.TB, e *Edge, shadow uint16, candidates int, ids ...uint16) {
	t.Helper()
	one := chain{Length: uint8(len(ids)), Candidates: uint8(candidates), Shadow: bigEndian(shadow)}
	if shadow != 0 {
		must(t, e.SetSID(shadow, packettest.SID(shadow)))
	}
	for i, id := range ids {
		one.IDs[i] = bigEndian(id)
		must(t, e.SetSID(id, packettest.SID(id)))
	}
	for service := range uint32(4) {
		must(t, putChains(e, service, slices.Repeat([]chain{one}, tableBuckets)))
	}
}

func (w *world) edgeSubject(e *Edge, side Side) subject {
	return subject{runner: newRunner(e.programs[side], w.near), tables: e.collection}
}

// The greatest segments that the host of the tables lets through.
const (
	tableMTU     = 1440
	tableMSSIPv4 = tableMTU - tcpHeadersIPv4
	tableMSSIPv6 = tableMTU - tcpHeadersIPv6
)

// tableHost is the host of the shared tables: its web services have enough to do.
func tableHost(t testing.TB, w *world, changes ...func(*HostConfig)) (*Host, subject) {
	t.Helper()
	config := hostConfig(t)
	config.Infrastructure = []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}
	config.TunnelMTU = tableMTU
	config.SIDs = []LocalSID{
		{Prefix: netip.PrefixFrom(packettest.DT4SID, 64), Behavior: srv6.EndDT4},
		{Prefix: netip.PrefixFrom(packettest.OfferSID, 48), Behavior: srv6.EndOFFER},
		{Prefix: netip.PrefixFrom(packettest.DT6SID, 64), Behavior: srv6.EndDT6},
		{Prefix: netip.PrefixFrom(packettest.DT46SID, 64), Behavior: srv6.EndDT46},
		{Prefix: netip.PrefixFrom(packettest.ClassicSID, 128), Behavior: srv6.EndOFFER},
		{Prefix: netip.PrefixFrom(packettest.CondSID, 48), Behavior: srv6.EndDT46COND,
			Backup: packettest.ShadowSID},
	}
	config.Source = packettest.HostAddr
	for _, change := range changes {
		change(&config)
	}
	h, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(h.Close)
	for i, key := range []ServiceKey{{VIP: packettest.VIP4, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Protocol: 6}} {
		index := uint32(i + 1)
		must(t, h.SetService(key, index, acceptance.Policy{Kind: acceptance.Static, Threshold: 4}))
		setBusy(t, h, index, 4)
	}
	w.openPorts(t, h.collection)
	return h, subject{runner: newRunner(h.programs["host"], w.near), tables: h.collection,
		host: true}
}

// setBusy pretends open connections.
func setBusy(t testing.TB, h *Host, index uint32, connections int32) {
	t.Helper()
	must(t, h.maps["busy"].Put(index, connections))
}

// mssLimit is the host's limit for a packet's family.
func mssLimit(p packettest.Packet) uint16 {
	if p.Dst.Is4() {
		return tableMSSIPv4
	}
	return tableMSSIPv6
}

// label is the flow label that an edge writes.
func label(tuple flow.Tuple) uint32 {
	if l := uint32(testHash(tuple) & 0xfffff); l != 0 {
		return l
	}
	return 1
}
