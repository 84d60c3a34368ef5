package datapath

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

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
	// Interfaces by what is done there: telemetry is inserted into what leaves, added to what
	// leaves, taken out of what arrives.
	Source, Transit, Sink []string
	SIDs                  []netip.Prefix // outer destinations of packets that the sink looks at
	// Infrastructure is where outer sources of the domain are; telemetry of others is refused.
	Infrastructure []netip.Prefix
}

// Equal reports whether both ask for the same programs.
func (c TelemetryConfig) Equal(o TelemetryConfig) bool {
	return c.Node == o.Node && c.Port == o.Port && slices.Equal(c.Source, o.Source) &&
		slices.Equal(c.Transit, o.Transit) && slices.Equal(c.Sink, o.Sink) &&
		slices.Equal(c.SIDs, o.SIDs) && slices.Equal(c.Infrastructure, o.Infrastructure)
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

func (c TelemetryClass) check() error {
	if c.Instructions == 0 {
		return nil
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
	switch {
	case c.Instructions == 0:
	case c.InTurn:
		e.OneIn = c.OneIn
	default: // chosen are numbers up to the threshold
		e.Threshold = uint32(math.Round(1<<32/float64(c.OneIn)) - 1)
	}
	return e
}

// Telemetry is the programs of in-band telemetry, with their tables. Its methods are for one
// goroutine, but that Events has its own.
type Telemetry struct {
	*collection
	config   TelemetryConfig
	programs map[string]*ebpf.Program
}

// OpenTelemetry loads the programs and empty tables, beside whatever is running: no packet gets
// telemetry until SetClasses. Dir is a directory on the bpf file system.
func OpenTelemetry(dir string, config TelemetryConfig) (*Telemetry, error) {
	if config.Port == 0 {
		return nil, fmt.Errorf("telemetry on UDP port 0: choose a port, the same for all nodes")
	}
	c, err := newCollection(dir)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{collection: c, config: config}
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
	if err := spec.Variables["settings"].Set(
		telemetrySettings{Node: t.config.Node, Port: t.config.Port,
			Infrastructure: prefixesOf(t.config.Infrastructure)}); err != nil {
		return err
	}
	if t.programs, err = t.load(spec, "telemetry_outcomes"); err != nil {
		return err
	}
	for _, prefix := range t.config.SIDs {
		key := telemetryPrefix{uint32(prefix.Bits()), prefix.Masked().Addr().As16()}
		if err := t.maps["telemetry_sids"].Put(key, uint32(1)); err != nil {
			return fmt.Errorf("take telemetry out at %s: %w", prefix, err)
		}
	}
	return nil
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
		if err := class.check(); err != nil {
			return fmt.Errorf("class %d: %w", number, err)
		}
	}
	var list telemetryList
	if err := t.maps["telemetry_classes"].Lookup(uint32(0), &list); err != nil {
		return fmt.Errorf("read the classes of telemetry: %w", err)
	}
	next := TelemetryClasses - list.First
	for number := range uint32(TelemetryClasses) {
		list.Classes[next+number] = telemetryClass{}
		if number < uint32(len(classes)) {
			list.Classes[next+number] = classes[number].entry()
		}
	}
	for _, first := range []uint32{list.First, next} {
		list.First = first
		if err := t.maps["telemetry_classes"].Put(uint32(0), list); err != nil {
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
			func(total *uint64, v uint64) { *total += v })
		if err != nil {
			return nil, fmt.Errorf("read telemetry's counters: %w", err)
		}
		list = append(list, Counter{Name: number.String(), Packets: packets})
	}
	return list, nil
}

// ForgetNextHops has nothing to do: the kernel forwards.
func (t *Telemetry) ForgetNextHops() error { return nil }

// Dump reads at most limit entries of a map. Entries of arrays that are all zero are left out.
func (t *Telemetry) Dump(name string, limit int) ([]Entry, error) {
	return t.dump(loadTelemetry, name, limit)
}

// Close releases the kernel objects; what is attached works on.
func (t *Telemetry) Close() { t.close() }

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
