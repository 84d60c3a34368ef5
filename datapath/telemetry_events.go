package datapath

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"sextant/datapath/model"
	"sextant/packet/flow"
)

// TelemetryEvent is a packet that the sink reports.
type TelemetryEvent struct {
	TimeNS    uint64 // of CLOCK_TAI
	GapNS     uint64 // since the flow's packet before
	Interface int    // index of the one that it came on
	Reasons   model.TelemetryReasons
	Flow      flow.Tuple // of the inner packet; the zero value if it has none
	// Packet is its first octets, from the outer IPv6 header on, telemetry included. It is valid
	// until Next is called again.
	Packet []byte
}

// TelemetryEvents reads what the sink found, in the order in which it came. It is for one
// goroutine, but that any may close it.
type TelemetryEvents struct {
	reader *ringbuf.Reader
	record ringbuf.Record

	mutex  sync.Mutex // of a look at the ring, which Close unmaps
	closed bool
}

// Events opens the sink's events.
func (t *Telemetry) Events() (*TelemetryEvents, error) {
	reader, err := ringbuf.NewReader(t.maps["telemetry_events"])
	if err != nil {
		return nil, fmt.Errorf("open telemetry's events: %w", err)
	}
	return &TelemetryEvents{reader: reader}, nil
}

// Next waits for an event. The error is ringbuf.ErrClosed once Close was called.
func (e *TelemetryEvents) Next() (TelemetryEvent, error) {
	if err := e.reader.ReadInto(&e.record); err != nil {
		return TelemetryEvent{}, fmt.Errorf("read telemetry's events: %w", err)
	}
	raw := e.record.RawSample
	if size := int(unsafe.Sizeof(telemetryEvent{})); len(raw) < size {
		return TelemetryEvent{}, fmt.Errorf("an event of telemetry has %d octets, not %d; are "+
			"programs of another version attached?", len(raw), size)
	}
	event := (*telemetryEvent)(unsafe.Pointer(unsafe.SliceData(raw)))
	return TelemetryEvent{
		Flow: event.Flow.tuple(), TimeNS: event.TimeNs, GapNS: event.GapNs,
		Interface: int(event.Interface), Reasons: model.TelemetryReasons(event.Reasons),
		Packet: event.Octets[:min(int(event.Length), len(event.Octets))],
	}, nil
}

// SetDeadline makes a Next that waits longer than this return os.ErrDeadlineExceeded. The zero time
// is none.
func (e *TelemetryEvents) SetDeadline(at time.Time) { e.reader.SetDeadline(at) }

// More tells whether there is an event that Next has not returned.
func (e *TelemetryEvents) More() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return !e.closed && e.reader.AvailableBytes() > 0
}

// Close ends a Next that waits, and releases the events.
func (e *TelemetryEvents) Close() error {
	e.mutex.Lock()
	e.closed = true
	e.mutex.Unlock()
	return e.reader.Close()
}
