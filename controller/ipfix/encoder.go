package ipfix

import (
	"encoding/binary"
	"time"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// MaxMessage is how long a message may be by default: with IPv6 and UDP headers 512 octets, as RFC
// 7011 section 10.3.3 recommends where the path MTU is unknown.
const MaxMessage = 512 - 40 - 8

const (
	version       = 10
	messageHeader = 16
	setHeader     = 4
	templateSet   = 2
	longLength    = 255 // in front of a variable field of 255 octets or more
)

// Interval is what was seen and when.
type Interval struct {
	Start, End     time.Time // of the first and the last report
	Packets, Drops uint64    // packets that were reported, and those of them as dropped
}

// Delay is the time of packets from the first node that told its time to the last.
type Delay struct {
	MeanUS, MinUS, MaxUS uint32 // microseconds
	SumUS                uint64
}

// Flow is a flow record.
type Flow struct {
	Interval
	Tuple   flow.Tuple
	Delay   *Delay // nil: not known
	Routing []byte // a segment routing header of telemetry.Packet; empty: none
}

// Extent is the mean and the greatest of some values; all ones if there are none.
type Extent struct{ Mean, Max uint32 }

// Link is a link record: what nodes said about the way out of one of them.
type Link struct {
	Interval
	Node           uint64
	Egress         uint32
	QueueBytes     Extent
	LatencyNS      Extent
	UtilizationPPM Extent
}

// Encoder makes messages of one observation domain. The zero value is not one: see New.
type Encoder struct {
	domain, enterprise uint32
	most               int
	send               func([]byte)

	message  []byte
	set      int    // where the open set begins; 0: none is open
	setID    uint16 // of the open set
	records  uint32 // data records in the message
	sequence uint32 // data records in the messages before
	now      time.Time
}

// New makes an encoder that gives its messages to send, each being good until send returns. The
// domain is the observation domain. Enterprise is the private enterprise number of the elements
// that IANA's registry does not have; with 0, they are left out.
func New(domain, enterprise uint32, send func([]byte)) *Encoder {
	return &Encoder{domain: domain, enterprise: enterprise, most: MaxMessage, send: send,
		message: make([]byte, messageHeader, MaxMessage)}
}

// Begin begins an export at a time. With templates, it writes them first: over UDP a collector
// that starts later, or that lost them, understands nothing before (RFC 7011 section 8.4).
func (e *Encoder) Begin(now time.Time, templates bool) {
	e.now = now
	if !templates {
		return
	}
	for _, k := range kinds {
		e.template(k)
	}
}

func (e *Encoder) template(k kind) {
	elements := k.elements(e.enterprise != 0)
	size := 4
	for _, f := range elements {
		if size += 4; f.enterprise {
			size += 4
		}
	}
	e.open(templateSet, size)
	e.put16(firstTemplate + uint16(k))
	e.put16(uint16(len(elements)))
	for _, f := range elements {
		if f.enterprise {
			e.put16(f.id | enterpriseBit)
			e.put16(f.size)
			e.put32(e.enterprise)
			continue
		}
		e.put16(f.id)
		e.put16(f.size)
	}
}

// Flow adds a flow. One whose segment routing header is too long for a message is added without.
func (e *Encoder) Flow(f Flow) {
	var k kind
	if f.Tuple.Src.Is4() {
		k |= ipv4
	}
	if f.Delay != nil {
		k |= delayed
	}
	size := e.fixed(k)
	var list, active []byte
	if len(f.Routing) > 0 {
		list, active = telemetry.SegmentList(f.Routing)
		if with := e.fixed(k|routed) + lengthSize(list) + len(list); with <= e.room() {
			k, size = k|routed, with
		}
	}
	e.open(firstTemplate+uint16(k), size)
	e.message = append(e.message, f.Tuple.Src.AsSlice()...)
	e.message = append(e.message, f.Tuple.Dst.AsSlice()...)
	e.put16(f.Tuple.SrcPort)
	e.put16(f.Tuple.DstPort)
	e.message = append(e.message, f.Tuple.Protocol)
	e.interval(f.Interval)
	if f.Delay != nil {
		e.put32(f.Delay.MeanUS)
		e.put32(f.Delay.MinUS)
		e.put32(f.Delay.MaxUS)
		e.put64(f.Delay.SumUS)
	}
	if k&routed != 0 {
		const left, flags, tag = 3, 5, 6
		e.message = append(e.message, f.Routing[flags], f.Routing[tag], f.Routing[tag+1],
			f.Routing[left])
		e.message = append(e.message, active...)
		e.putVariable(list)
	}
	e.records++
}

// Link adds a link.
func (e *Encoder) Link(l Link) {
	e.open(firstTemplate+uint16(link), e.fixed(link))
	e.put64(l.Node)
	e.put32(l.Egress)
	e.interval(l.Interval)
	if e.enterprise != 0 {
		for _, x := range [...]Extent{l.QueueBytes, l.LatencyNS, l.UtilizationPPM} {
			e.put32(x.Mean)
			e.put32(x.Max)
		}
	}
	e.records++
}

func (e *Encoder) interval(i Interval) {
	e.put64(i.Packets)
	e.put64(i.Drops)
	e.put64(uint64(i.Start.UnixMilli()))
	e.put64(uint64(i.End.UnixMilli()))
}

// fixed returns the octets of the fields of a kind whose length is fixed.
func (e *Encoder) fixed(k kind) int {
	size := 0
	for _, f := range k.elements(e.enterprise != 0) {
		if f.size != variable {
			size += int(f.size)
		}
	}
	return size
}

// room is what one record may take.
func (e *Encoder) room() int { return e.most - messageHeader - setHeader }

// open makes room for that many octets in a set, in a new message if need be.
func (e *Encoder) open(id uint16, size int) {
	if e.set != 0 && e.setID == id && len(e.message)+size <= e.most {
		return
	}
	e.closeSet()
	if len(e.message)+setHeader+size > e.most {
		e.Flush()
	}
	e.set, e.setID = len(e.message), id
	e.put16(id)
	e.put16(0)
}

func (e *Encoder) closeSet() {
	if e.set != 0 {
		binary.BigEndian.PutUint16(e.message[e.set+2:], uint16(len(e.message)-e.set))
		e.set = 0
	}
}

// Flush sends what waits.
func (e *Encoder) Flush() {
	e.closeSet()
	if len(e.message) == messageHeader {
		return
	}
	b := e.message
	binary.BigEndian.PutUint16(b, version)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint32(b[4:], uint32(e.now.Unix()))
	binary.BigEndian.PutUint32(b[8:], e.sequence)
	binary.BigEndian.PutUint32(b[12:], e.domain)
	e.send(b)
	e.sequence += e.records
	e.message, e.records = b[:messageHeader], 0
}

func lengthSize(b []byte) int {
	if len(b) < longLength {
		return 1
	}
	return 3
}

// putVariable appends a field of variable length (RFC 7011 section 7).
func (e *Encoder) putVariable(b []byte) {
	if len(b) < longLength {
		e.message = append(e.message, uint8(len(b)))
	} else {
		e.message = append(e.message, longLength)
		e.put16(uint16(len(b)))
	}
	e.message = append(e.message, b...)
}

func (e *Encoder) put16(v uint16) { e.message = binary.BigEndian.AppendUint16(e.message, v) }
func (e *Encoder) put32(v uint32) { e.message = binary.BigEndian.AppendUint32(e.message, v) }
func (e *Encoder) put64(v uint64) { e.message = binary.BigEndian.AppendUint64(e.message, v) }
