package datapath

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
	"sextant/packet/telemetry"
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
}

// TelemetryClass is what a source does with the packets of one class. Without Instructions it
// leaves them alone.
type TelemetryClass struct {
	OneIn        uint32 // one packet in so many gets telemetry; at least 1
	InTurn       bool   // exactly each so manieth of a CPU, not by chance
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
	e = telemetryClass{Instructions: uint16(c.Instructions), Hops: c.Hops, Slots: c.Slots}
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
// telemetry until SetClass. Dir is a directory on the bpf file system.
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
		telemetrySettings{Node: t.config.Node, Port: t.config.Port}); err != nil {
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

// SetClass says what the source does with packets of a class, from now on.
func (t *Telemetry) SetClass(number int, class TelemetryClass) error {
	if number < 0 || number >= TelemetryClasses {
		return fmt.Errorf("class %d: there are classes 0 to %d", number, TelemetryClasses-1)
	}
	if err := class.check(); err != nil {
		return fmt.Errorf("class %d: %w", number, err)
	}
	return t.maps["telemetry_classes"].Put(uint32(number), class.entry())
}

// Outcomes counts packets by what the programs did with them.
func (t *Telemetry) Outcomes() (map[model.TelemetryOutcome]uint64, error) {
	outcomes := map[model.TelemetryOutcome]uint64{}
	for number := range model.TelemetryOutcomes {
		packets, err := sumPerCPU(t.maps["telemetry_outcomes"], uint32(number),
			func(total *uint64, v uint64) { *total += v })
		if err != nil {
			return nil, fmt.Errorf("read telemetry's counters: %w", err)
		}
		outcomes[number] = packets
	}
	return outcomes, nil
}

// Close lets go of the kernel objects; what is attached works on.
func (t *Telemetry) Close() { t.close() }
