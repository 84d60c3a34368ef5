package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

// Explainer runs a program on given frames, as the kernel would on frames that arrive, and disturbs
// nothing: it is the loaded program a second time (the same tag), on the same tables, with counters
// and memories of its own. Those memories that decide about packets are copied when it is opened;
// frames that are run one after the other then meet what the ones before left, as packets do. Its
// methods are for one goroutine, in the network namespace of the node.
type Explainer struct {
	*collection
	program  *ebpf.Program
	live     *ebpf.Program
	counters [2][]uint64 // drops and outcomes so far
	out      []byte
	loop     int // head-end: index of the interface by which copies come in
}

// Explained is what the program did with a frame.
type Explained struct {
	Verdict model.Verdict
	Outcome string // under which it was counted (enum outcome); "" when dropped
	Taken   bool   // HandToKernel: decapsulated for the local stack
	// why it was dropped; "" if it was not. hop_limit also of a packet that the kernel is to answer
	Reason    string
	Frame     []byte // after processing; nil when dropped. Valid until the next run
	Interface uint32 // by which Transmit and Redirect send
	note      []byte // what the program has put in front of the frame for another
}

// A memory is how an explainer treats a map.
type memory uint8

const (
	copied       memory = iota // decides about packets and is written by the program
	shared                     // only Go and other programs write it
	fresh                      // counters, and what can be looked up again
	copiedWithin               // as copied, a map of maps with what is in these
)

// memories names the maps of all programs that are not copied.
var memories = map[string]memory{
	"services": shared, "tables": shared, "paths": shared, "sids": shared, "ports": shared,
	"fib_epoch":       shared,
	"accept_policies": shared, "busy": shared, "counted": fresh,
	"reported": shared, "signals": shared,
	"drops": fresh, "outcomes": fresh, "service_traffic": fresh, "backend_traffic": fresh,
	"openings": fresh,
	"served":   fresh, "next_hops": fresh,
	"captured": fresh, "capture_scratch": fresh,
	"answers":   fresh,
	"hmac_keys": shared, "hmac_scratches": fresh, "hmac_known": fresh,
	"cache_events": fresh,
	"stray_sids":   shared, "stray_vrfs": shared, "stray_traffic": fresh,
	"steering": shared, "broadcasts": shared, "members": shared, "instances": shared,
	"order_port": shared, "order_alive": shared,
	"policy_traffic": fresh, "instance_counters": fresh, "histories": copiedWithin,
	"quic_configs": shared, "quic_servers": shared, "quic_scratches": fresh, "owners": fresh,
	"service_caches": fresh, "joints": fresh, "edge_works": fresh, "inner_packets": fresh,
	"flow_paths": shared, "flow_lists": shared, "flow_traffic": fresh,
	"flow_groups": shared, "flowlet_destinations": shared, "flowlet_groups": shared,
	"flowlet_paths": shared, "flowlet_outcomes": fresh,
	"flow_places": shared, "change_streams": shared, "changes_made": shared,
}

var sideNames = [...]string{External: "external", Internal: "internal", Mixed: "mixed"}

// Explainer opens one for the program that runs on the interfaces of a side. Close it.
func (e *Edge) Explainer(side Side) (*Explainer, error) {
	spec, err := e.spec(side)
	if err != nil {
		return nil, err
	}
	if e.programs[side] == nil {
		return nil, fmt.Errorf("explain packets: no interface of this edge is %s", sideNames[side])
	}
	return newExplainer(e.collection, spec, "edge", e.programs[side])
}

// Explainer opens one for the program that runs on the host's interfaces. Close it.
func (h *Host) Explainer() (*Explainer, error) {
	spec, err := h.spec()
	if err != nil {
		return nil, err
	}
	return newExplainer(h.collection, spec, "host", h.programs["host"])
}

func newExplainer(running *collection, spec *ebpf.CollectionSpec, name string,
	live *ebpf.Program) (*Explainer, error) {
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	x := &Explainer{collection: &collection{maps: map[string]*ebpf.Map{}}, live: live,
		out: make([]byte, explainFrameMax)}
	if err := x.open(running, spec, name); err != nil {
		x.Close()
		return nil, fmt.Errorf("explain packets: %w", err)
	}
	return x, nil
}

// explainFrameMax bounds a frame after processing, in bytes: what an IP length field can say, and
// headers.
const explainFrameMax = 1 << 17

func (x *Explainer) open(running *collection, spec *ebpf.CollectionSpec, name string) error {
	for table, m := range running.maps {
		var own *ebpf.Map
		var err error
		switch memories[table] {
		case shared:
			own, err = m.Clone()
		case copied:
			own, err = copyMap(spec.Maps[table], m, copyEntries)
		case copiedWithin:
			own, err = copyMap(spec.Maps[table], m, copyHistories)
		case fresh:
			continue // made with the program
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
		x.maps[table] = own
	}
	programs, err := x.load(spec)
	if err != nil {
		return err
	}
	x.program = programs[name]
	if got, want := x.Tag(), tagOf(x.live); got != want {
		return fmt.Errorf("the program that runs (tag %s) is not the one of this agent (tag %s); "+
			"restart the agent", want, got)
	}
	for i, counters := range x.enums() {
		if m := x.maps[counters.table]; m != nil {
			x.counters[i] = make([]uint64, m.MaxEntries())
		}
	}
	return nil
}

// copyMap makes a map with the same entries, which fill copies.
func copyMap(spec *ebpf.MapSpec, from *ebpf.Map,
	fill func(to, from *ebpf.Map) error) (*ebpf.Map, error) {
	to, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, err
	}
	if err := fill(to, from); err != nil {
		to.Close()
		return nil, err
	}
	return to, nil
}

// copyEntries reads what the kernel gives, entry by entry: of a map that changes meanwhile, an
// entry may be missing.
func copyEntries(to, from *ebpf.Map) error {
	if from.Type() == ebpf.Array && from.ValueSize() == flowSetSize { // the large ones
		return copySets(to, from)
	}
	key, value := []byte(nil), any(nil)
	entries := from.Iterate()
	if perCPU(from.Type()) {
		var values [][]byte
		for entries.Next(&key, &values) {
			if err := to.Put(key, values); err != nil {
				return err
			}
		}
		return entries.Err()
	}
	value = make([]byte, from.ValueSize())
	for entries.Next(&key, value) {
		if err := to.Put(key, value); err != nil {
			return err
		}
	}
	return entries.Err()
}

// Tag is the hash of the program's instructions, which both copies of it have.
func (x *Explainer) Tag() string { return tagOf(x.program) }

// xdpContext is struct xdp_md.
type xdpContext struct {
	Data, DataEnd, DataMeta, Ingress, Queue, Egress uint32
}

// What XDP programs return, enum xdp_action.
const (
	xdpPass     = 2
	xdpTransmit = 3
	xdpRedirect = 4
)

// minFrame is the least that the kernel runs a program on, in bytes: an Ethernet header.
const minFrame = 14

// Run gives the program a frame that arrives on the interface of an index.
func (x *Explainer) Run(ingress int, frame []byte) (Explained, error) {
	if len(frame) < minFrame {
		return Explained{}, fmt.Errorf(
			"explain a frame of %d bytes: it has no whole Ethernet header; give %d bytes or more",
			len(frame), minFrame)
	}
	var after xdpContext
	options := ebpf.RunOptions{
		Data: frame, DataOut: x.out, Context: xdpContext{DataEnd: uint32(len(frame)),
			Ingress: uint32(ingress)}, ContextOut: &after,
	}
	code, err := x.program.Run(&options)
	if err != nil {
		return Explained{}, fmt.Errorf("run the program on a frame of %d bytes: %w; the longest "+
			"that fits is about 60 KiB", len(frame), err)
	}
	counted, err := x.counted()
	if err != nil {
		return Explained{}, err
	}
	start := min(int(after.Data), len(options.DataOut))
	e := Explained{
		Reason: counted[0], Outcome: counted[1], Taken: counted[1] == "taken",
		Frame: options.DataOut[start:], note: options.DataOut[:start],
	}
	switch e.Verdict = verdictOf(code, e.Outcome); e.Verdict {
	case model.Transmit:
		e.Interface = uint32(ingress)
	case model.Redirect:
		e.Interface, err = x.interfaceOf(e.Frame)
	case model.Drop:
		e.Frame = nil
	}
	return e, err
}

// An enumeration of counters.
type enumeration struct {
	table string
	names []string
}

func (x *Explainer) enums() [2]enumeration {
	if x.maps["flowlet_outcomes"] != nil { // programs that drop nothing
		return [2]enumeration{{}, {"flowlet_outcomes", flowletOutcomes}}
	}
	return [2]enumeration{{"drops", reasonNames()}, {"outcomes", outcomeNames()}}
}

// counted names the reason and the outcome that the last run has counted; "" for none.
func (x *Explainer) counted() (names [2]string, err error) {
	for i, enum := range x.enums() {
		if x.maps[enum.table] == nil {
			continue
		}
		totals, err := totalsOf(x.maps[enum.table])
		if err != nil {
			return names, fmt.Errorf("read what %s has counted: %w", enum.table, err)
		}
		for number, total := range totals {
			if total != x.counters[i][number] {
				names[i], x.counters[i][number] = nameOf(enum.names, number), total
			}
		}
	}
	return names, nil
}

// totalsOf adds up the entries of an array of counters per CPU.
func totalsOf(m *ebpf.Map) ([]uint64, error) {
	values, err := allPerCPU[uint64](m)
	if err != nil {
		return nil, err
	}
	totals := make([]uint64, m.MaxEntries())
	cpus := len(values) / len(totals)
	for i, v := range values {
		totals[i/cpus] += v
	}
	return totals, nil
}

// interfaceOf finds the interface by which a redirected frame leaves: the kernel does not tell, but
// the program notes each next hop that it asks for, with the addresses that the frame has now. It
// is in the set of the SID's id, or in that of answers that are not kept; one of a SID that is not
// of the block can be in any. 0: it is not known.
func (x *Explainer) interfaceOf(frame []byte) (uint32, error) {
	if x.maps["next_hops"] == nil {
		return 0, nil // of an egress, which sends into its own pair of interfaces only
	}
	likely := []int{nextHopSIDs}
	if ip := frame[minFrame:]; len(ip) >= outerLength {
		likely = append(likely, (int(ip[ipv6Destination+4])<<8|
			int(ip[ipv6Destination+5]))%nextHopSIDs)
	}
	for _, number := range likely {
		var sets []nextHopSet
		if err := x.maps["next_hops"].Lookup(uint32(number), &sets); err != nil {
			return 0, fmt.Errorf("read next hops: %w", err)
		}
		if leaves := interfaceIn(sets, frame); leaves != 0 {
			return leaves, nil
		}
	}
	all, err := allPerCPU[nextHopSet](x.maps["next_hops"])
	if err != nil {
		return 0, fmt.Errorf("read next hops: %w", err)
	}
	return interfaceIn(all, frame), nil
}

// interfaceIn is that of the first next hop whose addresses the frame has; 0: there is none.
func interfaceIn(sets []nextHopSet, frame []byte) uint32 {
	for _, set := range sets {
		for _, hop := range set.Choices {
			if hop.How == nextHopSend && hop.Addresses == [12]byte(frame) {
				return hop.Interface
			}
		}
	}
	return 0
}

const (
	outerLength     = 40 // bytes of an IPv6 header
	ipv6Destination = 24 // offset in it
)

// Served returns what the explained packets have counted for the service of index; index 0 is what
// belonged to none. Host only.
func (x *Explainer) Served(index uint32) (HostTraffic, error) {
	return hostTraffic(x.maps["served"], index)
}

// Refusal returns what the slot of a flow's hash remembers of a refused SYN: it changes when the
// flow is refused anew. Host only.
func (x *Explainer) Refusal(hash uint64) (memory uint64, err error) {
	err = x.maps["refusals"].Lookup(uint32(hash)%x.maps["refusals"].MaxEntries(), &memory)
	return memory, err
}

// Close releases the copy.
func (x *Explainer) Close() { x.close() }
