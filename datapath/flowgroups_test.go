package datapath

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// groupPrefixes have groups in tests: longer and shorter ones of the same addresses, by the pause
// after which flows choose again.
var groupPrefixes = map[netip.Prefix]time.Duration{
	netip.MustParsePrefix("2001:db8:80::/48"):     0,
	netip.MustParsePrefix("2001:db8:80::81/128"):  time.Hour,
	netip.MustParsePrefix("198.51.100.0/24"):      time.Nanosecond,
	netip.MustParsePrefix("198.51.100.80/32"):     0,
	netip.MustParsePrefix("2001:db8:80:0:8::/80"): 0,
}

// Flows that begin choose of groups: program and model do the same with each frame, while groups
// come, go, and have other lists and other weights; and a frame that comes again finds its flow on
// the list that it had, while that is up.
func TestGroupsAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for _, side := range []Side{External, Mixed} {
		compareGroups(t, w, side, *frames/8+1)
	}
}

func compareGroups(t *testing.T, w *world, side Side, count int) {
	t.Helper()
	ends := newTwoHeadends(t, w, side)
	now := time.Duration(0)
	ends.model.Clock = func() time.Duration { now += time.Microsecond; return now }
	headers := groupHeaders(t, ends.program.Source())
	arrival := newRunner(ends.program.programs[side], w.near)
	loop := newRunner(ends.program.programs[Internal], ends.program.loop.inner)
	generator, random := steerGenerator(11+uint64(side)), rand.New(rand.NewPCG(3, uint64(side)))
	prefixes := make([]netip.Prefix, 0, len(groupPrefixes))
	for prefix := range groupPrefixes {
		prefixes = append(prefixes, prefix)
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	lists, steered := map[netip.Prefix][]srpolicy.Header{}, 0
	for i := range count {
		if i%16 == 0 {
			changeGroup(t, ends, prefixes[random.IntN(len(prefixes))], lists, headers, random)
		}
		frame := generator.Next()
		if len(frame) < ethernetHeader {
			continue
		}
		if i%8 == 0 {
			standStill(t, ends, random)
		}
		for range 2 {
			want := ends.model.Process(uint32(w.near), 0, slices.Clone(frame))
			verdict, after := arrival.run(t, frame)
			if want.Flow {
				steered++
			}
			if !steeredAlike(t, frame, verdict, after, want, ends.model, loop) {
				t.Fatalf("frame %d of %x", i, frame)
			}
		}
	}
	if steered < count/4 {
		t.Errorf("%d of %d frames chose of a group: the generator misses", steered, 2*count)
	}
	groups, err := ends.program.Groups()
	must(t, err)
	if len(groups) != len(lists) {
		t.Errorf("there are %d groups, and %d were set", len(groups), len(lists))
	}
}

// standStill lets some rate stand for each first segment: the program's meters were read in the
// future, and wait for it.
func standStill(t *testing.T, ends twoHeadends, random *rand.Rand) {
	t.Helper()
	const future = 1 << 62
	var ways [64][4]uint64 // octets; at, octets and rate of the meter
	ends.model.GoesOut = map[netip.Addr]uint64{}
	for first, number := range ends.program.hops.of {
		way := &ways[number%64]
		if way[1] == 0 {
			way[1], way[3] = future, uint64(random.IntN(4))
		}
		ends.model.GoesOut[first] = way[3]
	}
	must(t, ends.program.maps["flow_ways"].Put(uint32(0), ways))
}

// groupHeaders are lists that groups can have, no two alike, and more than fit one group.
func groupHeaders(t *testing.T, source srpolicy.Source) (headers []srpolicy.Header) {
	t.Helper()
	seen := map[string]bool{}
	for _, header := range flowHeaders(t, source) {
		for variant := range byte(6) {
			header.Octets = slices.Clone(header.Octets)
			if len(header.Octets) > 40 {
				header.Octets[len(header.Octets)-1] = variant // behind the destination
			}
			if !seen[string(header.Octets)] {
				seen[string(header.Octets)] = true
				headers = append(headers, header)
			}
		}
	}
	if len(headers) <= GroupLists {
		t.Fatalf("%d lists", len(headers))
	}
	return headers
}

// changeGroup gives a prefix other weights, other lists, or no group. The model gets the lists in
// the slots in which the program has them: each where it was.
func changeGroup(t *testing.T, ends twoHeadends, prefix netip.Prefix,
	lists map[netip.Prefix][]srpolicy.Header, headers []srpolicy.Header, random *rand.Rand) {
	t.Helper()
	fresh := lists[prefix] == nil || random.IntN(4) == 0
	if !fresh && random.IntN(8) == 0 {
		delete(lists, prefix)
		must(t, ends.program.RemoveGroup(prefix))
		ends.model.RemoveGroup(prefix)
		return
	}
	before := lists[prefix]
	if fresh {
		order := random.Perm(len(headers))[:1+random.IntN(min(GroupLists, len(headers)))]
		lists[prefix] = nil
		for _, i := range order {
			lists[prefix] = append(lists[prefix], headers[i])
		}
	}
	weights := make([]uint32, len(lists[prefix]))
	for i := range weights {
		weights[i] = uint32(random.IntN(3)) * uint32(random.IntN(1<<16))
	}
	weights[random.IntN(len(weights))] = 1 << 16
	flowlet := groupPrefixes[prefix]
	must(t, errors.Join(ends.program.SetGroups([]Group{{Prefix: prefix, Lists: lists[prefix],
		Weights: weights, Flowlet: flowlet, Hold: time.Hour}})...))
	slots, slotWeights := slotsOf(t, ends.program, prefix, lists[prefix], weights)
	for i, header := range before {
		same := func(l srpolicy.Header) bool { return string(l.Octets) == string(header.Octets) }
		if slices.ContainsFunc(lists[prefix], same) && !same(slots[i]) {
			t.Fatalf("list %d of %v is in another slot", i, prefix)
		}
	}
	lists[prefix] = slots
	ends.model.SetGroup(model.Group{Prefix: prefix, Lists: slots, Weights: slotWeights,
		Flowlet: flowlet})
}

// slotsOf are the lists of a group as the program has them, each with the weight that it was given,
// or none.
func slotsOf(t *testing.T, h *Headend, prefix netip.Prefix, lists []srpolicy.Header,
	weights []uint32) (slots []srpolicy.Header, slotWeights []uint32) {
	t.Helper()
	groups, err := h.Groups()
	must(t, err)
	at := slices.IndexFunc(groups, func(g Group) bool { return g.Prefix == prefix })
	slots, slotWeights = groups[at].Lists, make([]uint32, len(groups[at].Lists))
	for i, list := range lists {
		slot := slices.IndexFunc(slots, func(l srpolicy.Header) bool {
			return string(l.Octets) == string(list.Octets)
		})
		if slot < 0 {
			t.Fatalf("list %d of %v has no slot", i, prefix)
		}
		slotWeights[slot] = weights[i]
	}
	return slots, slotWeights
}

// groupTest is a head-end with a group of two lists that have the same first segment, so that
// weights alone choose, and frames to it.
type groupTest struct {
	t       *testing.T
	h       *Headend
	arrival *runner
	lists   []srpolicy.Header
}

var spreadPrefix = netip.MustParsePrefix("2001:db8:80::/64")

func newGroupTest(t *testing.T) *groupTest {
	t.Helper()
	w := newWorld(t)
	routeBackends(t)
	h := newTwoHeadends(t, w, Internal).program
	must(t, h.SetTable(nil))
	x := &groupTest{t: t, h: h, arrival: newRunner(h.programs[Internal], w.near)}
	for i := range byte(2) {
		header := flowHeaders(t, h.Source())[0]
		header.Octets = slices.Clone(header.Octets)
		header.Octets[len(header.Octets)-1] = i // of the last segment
		x.lists = append(x.lists, header)
	}
	return x
}

func (x *groupTest) set(flowlet time.Duration, weights ...uint32) {
	x.t.Helper()
	must(x.t, errors.Join(x.h.SetGroups([]Group{{Prefix: spreadPrefix, Lists: x.lists,
		Weights: weights, Flowlet: flowlet, Hold: time.Hour}})...))
}

// groupFlow is a flow to the group.
func groupFlow(i int) flow.Tuple {
	return flow.Tuple{Src: netip.MustParseAddr("2001:db8::7"), SrcPort: uint16(i), Protocol: 6,
		DstPort: uint16(443 + i>>16), Dst: netip.MustParseAddr("2001:db8:80::80")}
}

const (
	flagSYN, flagRST, flagACK = 0x02, 0x04, 0x10
	noList                    = -1
)

// took is which list a segment of a flow took, with the whole packet compared.
func (x *groupTest) took(t flow.Tuple, flags byte) int {
	x.t.Helper()
	frame := segmentFrame(t, 64)
	frame[ethernetHeader+53] = flags
	_, after := x.arrival.run(x.t, frame)
	if string(after) == string(frame) {
		return noList
	}
	for i, header := range x.lists {
		n := len(header.Octets)
		outer := slices.Clone(header.Octets)
		got := after[ethernetHeader:]
		if len(got) != n+len(frame)-ethernetHeader || got[n-1] != outer[n-1] {
			continue
		}
		copy(outer, got[:4]) // traffic class and flow label
		binary.BigEndian.PutUint16(outer[4:], uint16(len(got)-40))
		outer[header.NextAt] = 41
		inner := slices.Clone(frame[ethernetHeader:])
		inner[7]-- // a hop
		if string(got) != string(outer)+string(inner) {
			x.t.Fatalf("%v: %x", t, got)
		}
		return i
	}
	x.t.Fatalf("%v: none of the lists: %x", t, after)
	return noList
}

func (x *groupTest) await(what string, holds func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("never: %s", what)
		}
	}
}

// Flows that begin are spread by weight, and keep their lists when weights change; those of a list
// that is down leave it, and stay away when it is back; a group that is removed, or whose time is
// over, leaves flows to the rules.
func TestFlowsKeepWhatTheyChose(t *testing.T) {
	x := newGroupTest(t)
	x.set(0, 3, 1)
	const flows = 4000
	first := make([]int, flows)
	ones := 0
	for i := range flows {
		first[i] = x.took(groupFlow(i), flagACK)
		ones += first[i]
	}
	if ones < flows*22/100 || ones > flows*28/100 {
		t.Errorf("%d of %d flows took the list with a quarter of the weight", ones, flows)
	}
	x.set(0, 1, 1<<16)
	for i := range flows {
		if list := x.took(groupFlow(i), flagACK); list != first[i] {
			t.Fatalf("flow %d was on list %d, and is on %d with other weights", i, first[i], list)
		}
	}
	x.set(0, 1, 0)
	for i := range flows {
		if list := x.took(groupFlow(i), flagACK); list != 0 {
			t.Fatalf("flow %d is on list %d, which is down", i, list)
		}
	}
	x.set(0, 1, 1<<16)
	for i := range flows {
		if list := x.took(groupFlow(i), flagACK); list != 0 {
			t.Fatalf("flow %d went back to list %d", i, list)
		}
	}
	must(t, x.h.SetGroups([]Group{{Prefix: spreadPrefix, Lists: x.lists, Weights: []uint32{1, 1},
		Hold: time.Nanosecond}})[0])
	x.await("the group's time is over", func() bool {
		return x.took(groupFlow(0), flagACK) == noList
	})
	x.set(0, 1, 1)
	must(t, x.h.RemoveGroup(spreadPrefix))
	must(t, x.h.RemoveGroup(spreadPrefix)) // it is gone already
	if list := x.took(groupFlow(0), flagACK); list != noList {
		t.Errorf("a group that was removed has list %d for a flow", list)
	}
}

// A flow with a path of its own takes that, whatever the group says.
func TestFlowPathPrecedesGroup(t *testing.T) {
	x := newGroupTest(t)
	x.set(0, 1, 0)
	must(t, x.h.SetFlow(groupFlow(1), x.lists[1], time.Hour))
	if own, other := x.took(groupFlow(1), flagACK), x.took(groupFlow(2), flagACK); own != 1 ||
		other != 0 {
		t.Errorf("the flow with a path takes list %d, another one %d", own, other)
	}
}

// What goes out over a first segment is counted, of flows that a controller gave a path, too, and a
// flow that begins takes the list over whose first segment less goes out. The time constant is a
// second, so that what was read stands, or fades a little, however long the test takes.
func TestFlowsAvoidBusyWays(t *testing.T) {
	x := newGroupTest(t)
	headers := flowHeaders(t, x.h.Source())
	x.lists = headers[:1]
	for _, header := range headers[1:] {
		if header.Destination() != headers[0].Destination() {
			x.lists = append(x.lists, header)
			break
		}
	}
	x.set(2*time.Second, 1, 1)
	octets := func() (counts [2]uint64) {
		var ways [64][4]uint64
		must(t, x.h.maps["flow_ways"].Lookup(uint32(0), &ways))
		for i, header := range x.lists {
			counts[i] = ways[x.h.hops.number(header)%64][0]
		}
		return counts
	}
	const given, began = 400, 40
	must(t, x.h.SetFlow(groupFlow(0), x.lists[1], time.Hour))
	for range given {
		x.took(groupFlow(0), flagACK)
	}
	length := uint64(len(segmentFrame(groupFlow(0), 64)) - ethernetHeader)
	if got := octets(); got != [2]uint64{0, given * length} {
		t.Fatalf("%d octets went out, of %d packets of %d", got, given, length)
	}
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	var ways [64][4]uint64 // both meters begin now, the one of the busy way before its packets
	for i, header := range x.lists {
		ways[x.h.hops.number(header)%64] = [4]uint64{octets()[i], uint64(now.Nano()) - 1e9, 0, 0}
	}
	must(t, x.h.maps["flow_ways"].Put(uint32(0), ways))
	busy := 0
	for i := range began {
		busy += x.took(groupFlow(1+i), flagACK)
	}
	if busy > 0 {
		t.Errorf("%d of %d flows began on the busy way", busy, began)
	}
	if got := octets(); got[0] != began*length {
		t.Errorf("%d octets went out over the other way, of %d packets", got[0], began)
	}
}

// The rate of a way is that of srpolicy.Meter, over the time that belongs to the group's flowlets,
// at the time at which the program read it.
func TestRatesOfWays(t *testing.T) {
	x := newGroupTest(t)
	for i, flowlet := range []time.Duration{10 * time.Millisecond,
		100 * time.Millisecond, 2 * time.Second, time.Hour} {
		x.set(flowlet, 1, 1)
		way := x.h.hops.number(x.lists[0]) % 64
		var now unix.Timespec
		must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		const ago = 200_000_000 // ns: longer than a rate stands
		at, octets := uint64(now.Nano())-ago, uint64(1)<<20
		var ways [64][4]uint64
		ways[way] = [4]uint64{octets, at, 0, 1 << 30}
		must(t, x.h.maps["flow_ways"].Put(uint32(0), ways))
		x.took(groupFlow(100+i), flagACK)
		must(t, x.h.maps["flow_ways"].Lookup(uint32(0), &ways))
		memory := uint64(srpolicy.WayMemory(flowlet))
		elapsed := ways[way][1] - at
		want := (memory<<30 + octets<<srpolicy.MeterUnit) / (memory + elapsed)
		if got := ways[way][3]; got != want || elapsed < ago {
			t.Errorf("flowlets of %v: rate %d after %d ns, want %d", flowlet, got, elapsed, want)
		}
	}
}

// Floods of packets that open connections, and of what answers them, take nothing from flows:
// neither what they chose, nor paths that a controller gave; nor do packets that go on with
// connections that never were take these paths.
func TestFloodsLeaveFlows(t *testing.T) {
	x := newGroupTest(t)
	x.set(0, 1, 0)
	const flows, flood = 500, 100_000 // more than the table's entries
	for i := range flows {
		x.took(groupFlow(i), flagACK)
		must(t, x.h.SetFlow(groupFlow(flows+i), x.lists[1], time.Hour))
	}
	x.set(0, 1, 1<<16) // flows that would choose again took list 1
	for i := range flood {
		x.took(groupFlow(1<<20+i), []byte{flagSYN, flagSYN | flagACK, flagRST | flagACK}[i%3])
	}
	for i := range flows {
		if list := x.took(groupFlow(i), flagACK); list != 0 {
			t.Fatalf("after the flood flow %d is on list %d", i, list)
		}
	}
	for i := range flood {
		x.took(groupFlow(1<<20+i), flagACK)
	}
	x.set(0, 1<<16, 0)
	for i := range flows {
		if list := x.took(groupFlow(flows+i), flagACK); list != 1 {
			t.Fatalf("after the flood a flow with a path of its own is on list %d", list)
		}
	}
}

// With a flowlet time of a nanosecond a flow chooses with each packet: by weight. With one of an
// hour it keeps its list.
func TestFlowletsChooseAgain(t *testing.T) {
	for flowlet, wanted := range map[time.Duration][2]int{time.Nanosecond: {22, 28},
		time.Hour: {0, 0}} {
		x := newGroupTest(t)
		x.set(flowlet, 1, 0)
		x.took(groupFlow(1), flagACK)
		x.set(flowlet, 3, 1)
		const packets = 4000
		ones := 0
		for range packets {
			ones += x.took(groupFlow(1), flagACK)
		}
		if ones < packets*wanted[0]/100 || ones > packets*wanted[1]/100 {
			t.Errorf("flowlets after %v: %d of %d packets took the list with a quarter of the "+
				"weight", flowlet, ones, packets)
		}
	}
}

// Lists of groups whose time is over give their places to others, and those of the others keep
// theirs; a group of which a list finds no place is refused.
func TestGroupListsAreUsedAgain(t *testing.T) {
	x := newGroupTest(t)
	lists := func(group int) (all []srpolicy.Header) {
		for i := range GroupLists {
			header := x.lists[0]
			header.Octets = slices.Clone(header.Octets)
			binary.BigEndian.PutUint16(header.Octets[len(header.Octets)-4:],
				uint16(group*GroupLists+i))
			all = append(all, header)
		}
		return all
	}
	set := func(i int, hold time.Duration) error {
		prefix := netip.MustParsePrefix("2001:db8:80::/48").Addr().As16()
		binary.BigEndian.PutUint16(prefix[6:], uint16(i))
		return x.h.SetGroups([]Group{{Prefix: netip.PrefixFrom(netip.AddrFrom16(prefix), 64),
			Lists: lists(i), Weights: slices.Repeat([]uint32{1}, GroupLists), Hold: hold}})[0]
	}
	const most, over = flowLists / GroupLists, 3
	for i := range most {
		hold := time.Hour
		if i < over {
			hold = time.Nanosecond
		}
		must(t, set(i, hold))
	}
	for i := range over {
		must(t, set(most+i, time.Hour))
	}
	if err := set(most+over, time.Hour); err == nil {
		t.Errorf("there are places for %d groups", most+1)
	}
	groups, err := x.h.Groups()
	must(t, err)
	if len(groups) != most {
		t.Errorf("%d groups are left of %d", len(groups), most)
	}
	for _, g := range groups {
		address := g.Prefix.Addr().As16()
		for i, want := range lists(int(binary.BigEndian.Uint16(address[6:]))) {
			if string(g.Lists[i].Octets) != string(want.Octets) {
				t.Fatalf("list %d of %v is %x", i, g.Prefix, g.Lists[i].Octets)
			}
		}
	}
}

// What can be no group is refused, and changes nothing.
func TestGroupsAreChecked(t *testing.T) {
	x := newGroupTest(t)
	good := Group{Prefix: spreadPrefix, Lists: x.lists, Weights: []uint32{1, 1}, Hold: time.Hour}
	for what, change := range map[string]func(*Group){
		"bits of a host": func(g *Group) {
			g.Prefix = netip.PrefixFrom(netip.MustParseAddr("2001:db8:80::1"), 64)
		},
		"no prefix":        func(g *Group) { g.Prefix = netip.Prefix{} },
		"no lists":         func(g *Group) { g.Lists, g.Weights = nil, nil },
		"a weight missing": func(g *Group) { g.Weights = g.Weights[:1] },
		"all down":         func(g *Group) { g.Weights = []uint32{0, 0} },
		"no time":          func(g *Group) { g.Hold = 0 },
		"a list twice":     func(g *Group) { g.Lists = []srpolicy.Header{x.lists[0], x.lists[0]} },
		"too many lists": func(g *Group) {
			g.Lists = slices.Repeat(x.lists, GroupLists)
			g.Weights = slices.Repeat(g.Weights, GroupLists)
		},
	} {
		bad := good
		change(&bad)
		if err := x.h.SetGroups([]Group{bad})[0]; err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if list := x.took(groupFlow(0), flagACK); list != noList {
		t.Errorf("a flow took list %d", list)
	}
}
