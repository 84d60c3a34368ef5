package datapath

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

// TelemetryClasses is how many classes of packets a source tells apart.
const TelemetryClasses = 16

// TelemetryConfig is what the programs of in-band telemetry are loaded for: a change loads them
// anew.
type TelemetryConfig struct {
	Node uint32
	Port uint16 // UDP destination port that says that INT follows, one in the domain
	// Encoding is the form in which the source inserts telemetry; a transit and a sink know all.
	Encoding  model.TelemetryEncoding
	Namespace uint16 // of IOAM, one in the domain
	// Shift is how far nodes shift the nanoseconds of their clock for Path Tracing.
	Shift uint8
	// Plain are the hosts of the domain between which packets carry telemetry that nobody
	// encapsulates.
	Plain []netip.Prefix
	// Interfaces by what is done there: telemetry is inserted into what leaves, added to what
	// leaves, taken out of what arrives.
	Source, Transit, Sink []string
	SIDs                  []netip.Prefix // destinations of packets that the sink looks at
	// Infrastructure is where outer sources of the domain are; telemetry of others is refused.
	Infrastructure []netip.Prefix
}

// TelemetryClass is what a source does with the packets of one class. Without Instructions it
// leaves them alone.
type TelemetryClass struct {
	Match        srpolicy.Match // of the encapsulated packet
	OneIn        uint32         // one packet in so many gets telemetry; at least 1
	InTurn       bool           // exactly each so manieth of a CPU, not by chance
	Instructions telemetry.Instructions
	Hops         uint8 // that write, at most, the source counted
	// Slots are left free in the stack, into which as many nodes write without moving anything.
	Slots uint8
}

const (
	intHopWords  = 31 // INT_HOP_WORDS
	intRoomWords = 64 // INT_ROOM_WORDS
)

func (c TelemetryClass) check(encoding model.TelemetryEncoding) error {
	if c.Instructions == 0 {
		return nil
	}
	if octets := encoding.OptionOctets(c.Instructions, c.Hops); octets > model.OptionOctetsMax {
		return fmt.Errorf("%d nodes take %d octets of an option, which has %d; take fewer "+
			"instructions or hops", c.Hops, octets, model.OptionOctetsMax)
	}
	words := c.Instructions.Words()
	switch {
	case c.OneIn == 0:
		return fmt.Errorf("one packet in 0 is to get telemetry; it takes at least 1")
	case c.Hops == 0:
		return fmt.Errorf("telemetry of 0 hops; the source itself is one")
	case words*(1+int(c.Slots)) > intRoomWords || words > intHopWords:
		return fmt.Errorf("metadata of %d words with %d free slots: a source inserts %d words, "+
			"%d of one node; take fewer instructions or slots", words, c.Slots, intRoomWords,
			intHopWords)
	}
	return nil
}

// entry is the class as the program has it.
func (c TelemetryClass) entry() (e telemetryClass) {
	e = telemetryClass{Match: matchOf(c.Match), Instructions: uint16(c.Instructions),
		Hops: c.Hops, Slots: c.Slots, Listed: 1}
	if c.Match != (srpolicy.Match{}) {
		e.Looks = 1
	}
	e.fields()
	switch {
	case c.Instructions == 0:
	case c.InTurn:
		e.OneIn = c.OneIn
	default: // chosen are numbers up to the threshold
		e.Threshold = uint32(math.Round(1<<32/float64(c.OneIn)) - 1)
	}
	return e
}

// fields says of the match what the program compares in one step: flow_fields of
// bpf/include/telemetry_class.h.
func (e *telemetryClass) fields() {
	m, all := &e.Match, [2]uint16{0, 0xffff}
	const moreNetwork, moreAll, network = 1, 2, 2 // MORE_NETWORK, MORE_ALL, DESTINATION_WORD
	e.Addresses = addressWords(m.Family, m.Source.Address, m.Destination.Address)
	e.AddressesMask = addressWords(m.Family, m.Source.Mask, m.Destination.Mask)
	for i, mask := range e.AddressesMask {
		switch {
		case mask == 0:
		case i == network:
			e.More = max(e.More, moreNetwork)
		default:
			e.More = moreAll
		}
	}
	for i, ports := range [][2]uint16{m.SourcePorts, m.DestinationPorts} {
		switch {
		case ports[0] == ports[1]:
			e.Ports |= uint32(bits.ReverseBytes16(ports[0])) << (16 * i)
			e.PortsMask |= 0xffff << (16 * i)
		case ports != all:
			e.More = moreAll
		}
	}
	first := func(value, mask uint16) { // two octets of an IPv6 header: version, DSCP
		e.Head |= uint64(bits.ReverseBytes16(value))
		e.HeadMask |= uint64(bits.ReverseBytes16(mask))
	}
	if m.Family != 0 {
		first(uint16(m.Family)<<12, 0xf<<12)
	}
	if m.DSCP != dscpAny {
		first(uint16(m.DSCP)<<6, 0x3f<<6)
	}
	if m.Protocol != 0 {
		e.Head |= uint64(m.Protocol) << 48
		e.HeadMask |= 0xff << 48
	}
}

// addressWords are addresses as they lie behind the first eight octets of an IP header.
func addressWords(family uint8, source, destination address) (words [4]uint64) {
	octets := slices.Concat(source[:], destination[:])
	if family == 4 {
		octets = slices.Concat(make([]byte, 4), source[12:], destination[12:], make([]byte, 20))
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(octets[8*i:])
	}
	return words
}

// ceilingOf is the largest random number that chooses a packet of any class: all, where a class
// takes turns and has to count its packets.
func ceilingOf(classes []telemetryClass) (ceiling uint32) {
	for _, class := range classes {
		ceiling = max(ceiling, class.Threshold)
		if class.OneIn != 0 {
			return math.MaxUint32
		}
	}
	return ceiling
}

// Telemetry is the programs of in-band telemetry, with their tables. Its methods are for one
// goroutine, but that Events has its own.
type Telemetry struct {
	*collection
	config   TelemetryConfig
	programs map[string]*ebpf.Program
	rates    map[uint32]int // kbit/s of interfaces, that the programs know
}

// telemetryState is taken over from the predecessor: counters, and what the sink knows of flows.
var telemetryState = []string{"drops", "telemetry_outcomes", "telemetry_reasons",
	"telemetry_flows"}

var _ = objectsOf("telemetry", loadTelemetry)

// OpenTelemetry loads the programs and empty tables, beside whatever is running: no packet gets
// telemetry until SetClasses. Dir is a directory on the bpf file system.
func OpenTelemetry(dir string, config TelemetryConfig) (*Telemetry, error) {
	if config.Port == 0 {
		return nil, fmt.Errorf("telemetry on UDP port 0: choose a port, the same for all nodes")
	}
	c, err := newCollection(dir, loadTelemetry)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{collection: c, config: config, rates: map[uint32]int{}}
	if err := t.open(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) open() error {
	spec, err := loadTelemetry()
	if err != nil {
		return err
	}
	settings := telemetrySettings{Node: t.config.Node, Port: t.config.Port,
		Namespace: t.config.Namespace, Encoding: uint8(t.config.Encoding), Shift: t.config.Shift,
		Infrastructure: infrastructure{prefixesOf(t.config.Infrastructure)}}
	if len(t.config.Plain) > 0 {
		settings.Plain = 1
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return err
	}
	if t.programs, err = t.load(spec, telemetryState...); err != nil {
		return err
	}
	if err := t.seedChance(); err != nil {
		return err
	}
	prefixes := map[netip.Prefix]uint32{}
	for _, prefix := range t.config.SIDs {
		prefixes[prefix.Masked()] |= prefixSink
	}
	for _, prefix := range t.config.Plain {
		prefixes[prefix.Masked()] |= prefixPlain
	}
	for prefix := range prefixes {
		kinds := uint32(0) // of all prefixes that contain it: the longest is what is found
		for other, kind := range prefixes {
			if other.Bits() <= prefix.Bits() && other.Contains(prefix.Addr()) {
				kinds |= kind
			}
		}
		key := telemetryPrefix{uint32(prefix.Bits()), prefix.Addr().As16()}
		if err := t.maps["telemetry_prefixes"].Put(key, kinds); err != nil {
			return fmt.Errorf("know the packets of %s by their addresses: %w", prefix, err)
		}
	}
	return t.SetClock()
}

// seedChance begins the random numbers of each processor with another one.
func (t *Telemetry) seedChance() error {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count the processors: %w", err)
	}
	choices := make([]telemetryChoice, processors)
	for i := range choices {
		var seed [8]byte
		_, _ = rand.Read(seed[:]) // never fails
		choices[i].Chance = binary.LittleEndian.Uint64(seed[:])
	}
	if err := t.maps["telemetry_choices"].Put(uint32(0), choices); err != nil {
		return fmt.Errorf("begin the random numbers that choose packets: %w", err)
	}
	return nil
}

// telemetryListsMap is behind telemetry_lists of bpf/include/telemetry_class.h.
const telemetryListsMap = ".data.lists"

// enum telemetry_prefix_kind
const (
	prefixSink  = 1
	prefixPlain = 2
)

// SetClock tells the programs how far CLOCK_TAI, which they read, is before POSIX time, which IOAM
// writes: NTP may say so at any time.
func (t *Telemetry) SetClock() error {
	var lists telemetryLists
	if err := t.maps[telemetryListsMap].Lookup(uint32(0), &lists); err != nil {
		return fmt.Errorf("read the classes of telemetry: %w", err)
	}
	offset, err := taiOffset()
	if err != nil || offset == lists.TAIOffsetS {
		return err
	}
	lists.TAIOffsetS = offset
	return t.maps[telemetryListsMap].Put(uint32(0), lists)
}

// taiOffset is by how many seconds CLOCK_TAI is before POSIX time.
func taiOffset() (int32, error) {
	var tai, posix unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &posix),
		unix.ClockGettime(unix.CLOCK_TAI, &tai)); err != nil {
		return 0, fmt.Errorf("read the clocks: %w", err)
	}
	return int32(math.Round(float64(tai.Nano()-posix.Nano()) / 1e9)), nil
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything. What
// is no longer configured is released.
func (t *Telemetry) Commit() ([]Attachment, error) {
	var places []place
	for _, at := range []struct {
		name string
		on   []string
		kind placeKind
	}{
		{"telemetry_sink", t.config.Sink, onArriving},
		{"telemetry_transit", t.config.Transit, onLeaving},
		{"telemetry_source", t.config.Source, onLeaving},
	} {
		for _, name := range at.on {
			places = append(places, place{name: at.name, program: t.programs[at.name], on: name,
				kind: at.kind})
		}
	}
	return t.commit(places)
}

// SetClasses says what the source does with packets of each class, from now on: a packet is of the
// first class that it matches, and without one is left alone. All change at once: no packet meets
// some classes from before and some of now. An error changes nothing.
func (t *Telemetry) SetClasses(classes []TelemetryClass) error {
	if len(classes) > TelemetryClasses {
		return fmt.Errorf("%d classes of packets: a source tells %d apart", len(classes),
			TelemetryClasses)
	}
	for number, class := range classes {
		if err := class.check(t.config.Encoding); err != nil {
			return fmt.Errorf("class %d: %w", number, err)
		}
	}
	var lists telemetryLists
	if err := t.maps[telemetryListsMap].Lookup(uint32(0), &lists); err != nil {
		return fmt.Errorf("read the classes of telemetry: %w", err)
	}
	next := 1 - lists.Current
	list := &lists.Lists[next]
	*list = telemetryList{}
	for number, class := range classes {
		list.Classes[number] = class.entry()
		list.Classes[number].Number = uint8(number)
	}
	list.Ceiling = ceilingOf(list.Classes[:])
	for _, current := range []uint32{lists.Current, next} {
		lists.Current = current
		if err := t.maps[telemetryListsMap].Put(uint32(0), lists); err != nil {
			return fmt.Errorf("set the classes of telemetry: %w", err)
		}
	}
	return nil
}

// Outcomes counts packets by what the programs did with them.
func (t *Telemetry) Outcomes() ([]Counter, error) {
	var list []Counter
	for number := range model.TelemetryOutcomes {
		packets, err := sumPerCPU(t.maps["telemetry_outcomes"], uint32(number),
			addWords[uint64])
		if err != nil {
			return nil, fmt.Errorf("read telemetry's counters: %w", err)
		}
		list = append(list, Counter{Name: number.String(), Packets: packets})
	}
	return list, nil
}

// KnowsQueues says whether this kernel gives programs a way to an interface's queue: Linux 6.2.
// Otherwise nodes write that they do not know it.
var KnowsQueues = sync.OnceValue(func() bool {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false
	}
	var toQueue *btf.Func
	return kernel.TypeByName("bpf_cast_to_kern_ctx", &toQueue) == nil
})
