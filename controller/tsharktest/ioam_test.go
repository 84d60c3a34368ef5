package tsharktest_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/controller/tsharktest"
	"sextant/packet/telemetry"
)

// TestTraceDissected has Wireshark's own dissector of IOAM show random traces, from sources with as
// many nodes as have written, and compares fields.
func TestTraceDissected(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	const (
		short    = telemetry.TraceNode | telemetry.TraceInterfaces | telemetry.TraceQueueDepth
		queue    = telemetry.TraceNode | telemetry.TraceQueueDepth
		timed    = queue | telemetry.TraceSeconds | telemetry.TraceFraction
		detained = timed | telemetry.TraceTransitDelay
	)
	var frames [][]byte
	var want []fields
	for range 200 {
		of := []telemetry.TraceType{short, queue, timed, detained}[r.IntN(4)]
		hops := 1 + r.IntN(8)
		free := r.IntN(hops)
		trace := telemetry.Trace{Option: telemetry.OptionIOAM, Namespace: uint16(r.Uint32()),
			Overflow: r.IntN(2) == 0, RemainingWords: uint8(free * of.Words()), Type: of,
			Data: make([]byte, 4*hops*of.Words())}
		f := fields{}
		f.add("ipv6.opt.ioam.trace.ns", trace.Namespace)
		f.add("ipv6.opt.ioam.trace.nodelen", of.Words())
		f.add("ipv6.opt.ioam.trace.remlen", trace.RemainingWords)
		f.flag("ipv6.opt.ioam.trace.flag.o", trace.Overflow)
		for at := 4 * int(trace.RemainingWords); at < len(trace.Data); {
			word := func() uint32 {
				v := r.Uint32()
				binary.BigEndian.PutUint32(trace.Data[at:], v)
				at += 4
				return v
			}
			v := word()
			f.add("ipv6.opt.ioam.trace.node.hlim", v>>24)
			f.add("ipv6.opt.ioam.trace.node.id", fmt.Sprintf("0x%06x", v&0xffffff))
			for _, field := range []struct {
				of   telemetry.TraceType
				name string
			}{{telemetry.TraceSeconds, "tss"}, {telemetry.TraceFraction, "tsf"},
				{telemetry.TraceTransitDelay, "trdelay"}, {telemetry.TraceQueueDepth, "qdepth"}} {
				if of&telemetry.TraceInterfaces != 0 && field.of == telemetry.TraceSeconds {
					v := word()
					f.hex("ipv6.opt.ioam.trace.node.iif", uint16(v>>16))
					f.hex("ipv6.opt.ioam.trace.node.eif", uint16(v))
				}
				if of&field.of == 0 {
					continue
				}
				shown := fmt.Sprintf("0x%08x", word())
				f.add("ipv6.opt.ioam.trace.node."+field.name, shown)
			}
		}
		frames, want = append(frames, optioned(t, trace)), append(want, f)
	}
	compareFields(t, frames, want)
}

// optioned is a frame with a trace in front of a UDP header.
func optioned(t *testing.T, trace telemetry.Trace) []byte {
	t.Helper()
	frame := tsharktest.UDP(t, 9, nil)
	header, err := trace.AppendBinary([]byte{17, 0, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if len(header)%8 != 0 {
		header = append(header, 1, 2, 0, 0)
	}
	header[1] = byte(len(header)/8 - 1)
	frame = slices.Concat(frame[:54], header, frame[54:])
	frame[14+6] = 0
	binary.BigEndian.PutUint16(frame[14+4:], uint16(len(frame)-54))
	return frame
}
