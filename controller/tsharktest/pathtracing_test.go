package tsharktest_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sextant/controller/tsharktest"
	"sextant/packet/telemetry"
)

// TestPathTracingDissected has Wireshark show random options of Path Tracing, some with free room.
func TestPathTracingDissected(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	var frames [][]byte
	var want []fields
	for range 200 {
		trace := make(telemetry.PathTrace, 3*(1+r.IntN(12)))
		written := r.IntN(1 + len(trace)/3)
		nodes := make([]telemetry.Midpoint, written)
		for i := range nodes {
			nodes[i] = telemetry.Midpoint{Interface: uint16(1 + r.IntN(4095)),
				Load: uint8(r.IntN(16)), Stamp: uint8(r.Uint32())}
			if err := trace.Push(nodes[i]); err != nil {
				t.Fatal(err)
			}
		}
		f := fields{}
		for _, n := range slices.Backward(nodes) {
			f.add("path_tracing.interface", n.Interface)
			f.add("path_tracing.load", n.Load)
			f.add("path_tracing.time", n.Stamp)
		}
		frames, want = append(frames, pathTraced(t, trace)), append(want, f)
	}
	compareFields(t, frames, want)
}

// TestPathTracingOfDamage has Wireshark read options whose lengths and octets are wrong.
func TestPathTracingOfDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 4))
	var frames [][]byte
	for range 300 {
		trace := make(telemetry.PathTrace, r.IntN(40))
		for i := range trace {
			trace[i] = byte(r.Uint32())
		}
		frame := pathTraced(t, trace)
		for range r.IntN(4) {
			frame[54+r.IntN(len(frame)-54)] = byte(r.Uint32())
		}
		frames = append(frames, frame[:len(frame)-r.IntN(len(frame)-54)])
	}
	text := tsharktest.Read(t, frames, "-X", "lua_script:"+dissector, "-V")
	if at := strings.Index(text, "Lua Error"); at >= 0 {
		t.Error("the dissector fails:", text[at:][:300])
	}
	if !strings.Contains(text, "SRv6 Path Tracing") {
		t.Error("none of them is shown")
	}
}

// pathTraced is a frame with an option of Path Tracing in front of a UDP header.
func pathTraced(t *testing.T, trace telemetry.PathTrace) []byte {
	t.Helper()
	frame := tsharktest.UDP(t, 9, nil)
	header, err := trace.AppendBinary([]byte{17, 0, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	switch padding := -len(header) & 7; {
	case padding == 1:
		header = append(header, 0)
	case padding > 1:
		header = append(append(header, 1, byte(padding-2)), make([]byte, padding-2)...)
	}
	header[1] = byte(len(header)/8 - 1)
	frame = slices.Concat(frame[:54], header, frame[54:])
	frame[14+6] = 0
	binary.BigEndian.PutUint16(frame[14+4:], uint16(len(frame)-54))
	return frame
}
