package collector_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"sextant/controller/collector"
)

// attribute is one of netlink: length and type in the machine's order, value, padding.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// event is a message of family 30 about a trace of node 9 with queue 12, and then node 5 with 64.
func event(t testing.TB, nodeWords uint8) []byte {
	t.Helper()
	body := slices.Concat([]byte{1, 1, 0, 0},
		attribute(1, binary.NativeEndian.AppendUint16(nil, 123)),
		attribute(2, []byte{nodeWords}),
		attribute(3, binary.NativeEndian.AppendUint32(nil, 0x82000000)),
		attribute(4, fromHex(t, "3e000009 0000000c 3f000005 00000040")))
	b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.NativeEndian.AppendUint16(b, 30)
	return append(append(b, make([]byte, 10)...), body...)
}

func TestEvent(t *testing.T) {
	table := collector.NewTable(collector.Options{})
	table.Event(slices.Concat(event(t, 2), event(t, 2)), 1)
	got := links(table)
	if table.Events != 2 || got[collector.Link{Node: 5, Egress: unknown}] != [3]uint64{2, 64, 0} ||
		got[collector.Link{Node: 9, Egress: unknown}] != [3]uint64{2, 12, 0} {
		t.Fatalf("%d events, %v", table.Events, got)
	}
	for cut := 1; cut < len(event(t, 2)); cut++ {
		table.Event(event(t, 2)[:cut], 1)
	}
	table.Event(event(t, 3), 1) // words that are not those of the type
	if want := uint64(len(event(t, 2))); table.Dropped[collector.BadEvent] != want {
		t.Fatalf("%d bad events, not %d", table.Dropped[collector.BadEvent], want)
	}
	if table.Samples != 4 {
		t.Fatalf("%d samples", table.Samples)
	}
}

func TestEventsAndPacketsAllocateNothing(t *testing.T) {
	table := collector.NewTable(collector.Options{Watch: func(*collector.Report) {}})
	e, p := event(t, 2), fromHex(t, carried)
	if n := testing.AllocsPerRun(1000, func() {
		table.Event(e, 5)
		table.Packet(p, 5)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	if table.Dropped != (collector.NewTable(collector.Options{}).Dropped) {
		t.Fatal(table.Dropped)
	}
}

// Whatever the kernel or an interface hands over, what is told is counted once and no more than
// there are octets.
func FuzzEventAndPacket(f *testing.F) {
	f.Add(event(f, 2))
	f.Add(fromHex(f, carried))
	f.Fuzz(func(t *testing.T, b []byte) {
		samples := 0
		table := collector.NewTable(collector.Options{Watch: func(r *collector.Report) {
			samples += len(r.Samples)
		}})
		table.Event(b, 1)
		table.Packet(b, 1)
		if uint64(samples) != table.Samples || samples > 2*len(b) {
			t.Fatalf("%d samples of %d octets; %d counted", samples, len(b), table.Samples)
		}
	})
}
