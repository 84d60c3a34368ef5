package model_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// What holds for every frame, whatever is in it.

// networkOffset returns where the network header of a frame with at most two tags starts.
func networkOffset(frame []byte) int {
	at := 14
	for at < 22 {
		if kind := binary.BigEndian.Uint16(frame[at-2:]); kind != 0x8100 && kind != 0x88a8 {
			break
		}
		at += 4
	}
	return at
}

// checkResult checks what edge and host have in common. It reports whether there is a
// rewritten frame.
func checkResult(t *testing.T, ingress uint32, frame []byte, got model.Result) bool {
	t.Helper()
	switch got.Verdict {
	case model.Pass:
		if !bytes.Equal(got.Frame, frame) || got.Reason != model.ReasonNone {
			t.Errorf("%x passed as %x for %v", frame, got.Frame, got.Reason)
		}
	case model.Drop:
		if got.Frame != nil || got.Reason == model.ReasonNone || got.Taken {
			t.Errorf("%x dropped as %x for %v", frame, got.Frame, got.Reason)
		}
	case model.Transmit, model.Redirect, model.HandToKernel:
		if (got.Verdict == model.Transmit) != (got.Interface == ingress) {
			t.Errorf("%v by %d, in by %d", got.Verdict, got.Interface, ingress)
		}
		if tagged := networkOffset(got.Frame) != 14; tagged && got.Verdict == model.Redirect {
			t.Errorf("%x redirected with its tags as %x", frame, got.Frame)
		}
		return true
	default:
		t.Errorf("verdict %d", got.Verdict)
	}
	return false
}

// checkEdge gives the edge a frame: it passes unchanged, is dropped for a reason, or is
// forwarded unchanged in a right outer packet.
func checkEdge(t *testing.T, edge *model.Edge, ingress uint32, frame []byte) model.Result {
	t.Helper()
	before := bytes.Clone(frame)
	got := edge.Process(ingress, frame)
	if !bytes.Equal(frame, before) {
		t.Fatalf("the frame %x was written to: %x", before, frame)
	}
	if !checkResult(t, ingress, frame, got) {
		return got
	}
	in, out := frame[networkOffset(frame):], got.Frame[networkOffset(got.Frame):]
	if got.Answer != model.AnswerNone || isTold(got.Reason) {
		checkAnswer(t, in, out, got)
		return got
	}
	header := len(out) - len(in)
	if !bytes.HasSuffix(out, packettest.Forwarded(in)) || header < 40 || (header-40)%8 != 0 {
		t.Fatalf("%x forwarded as %x", in, out)
	}
	length := int(binary.BigEndian.Uint16(in[2:]))
	if in[0]>>4 == 6 {
		length = 40 + int(binary.BigEndian.Uint16(in[4:]))
	}
	if claimed := 40 + int(binary.BigEndian.Uint16(out[4:])); claimed != header+length {
		t.Errorf("%x forwarded in %d bytes that say %d", in, header+length, claimed)
	}
	if out[0]>>4 != 6 || int(out[7]) != edge.HopLimit ||
		netip.AddrFrom16([16]byte(out[8:24])) != edge.Source {
		t.Errorf("%x forwarded with the header %x", in, out[:40])
	}
	if got.Reason != model.ReasonNone || len(got.Chain) == 0 {
		t.Errorf("%x forwarded for %v to %v", in, got.Reason, got.Chain)
	}
	return got
}

// isTold reports whether a packet's sender can be told by an edge that it is dropped for a reason.
func isTold(reason model.Reason) bool {
	return reason == model.ReasonHopLimit || reason == model.ReasonBelowMinMTU
}

// checkAnswer: an answer goes from the VIP to the client, is not longer than the question, and its
// sums are right if those of the question are.
func checkAnswer(t *testing.T, in, out []byte, got model.Result) {
	t.Helper()
	told := isTold(got.Reason) && got.Answer == model.AnswerNone
	if !told && got.Reason != model.ReasonNone || got.Answer == model.AnswerEcho &&
		len(in) != len(out) ||
		(told || got.Answer == model.AnswerTooBig) && len(out) > len(in)+48 {
		t.Errorf("%x answered by %v, %x", in, got.Answer, out)
	}
	from, to := 12, 16
	size := 4
	if out[0]>>4 == 6 {
		from, to, size = 8, 24, 16
	}
	if got.Verdict != model.HandToKernel && (!bytes.Equal(in[from:][:size], out[to:][:size]) ||
		!bytes.Equal(in[to:][:size], out[from:][:size])) {
		t.Errorf("%x answered with the addresses of %x", in, out)
	}
	if got.Answer != model.AnswerEcho && !packettest.SumsRight(out) {
		t.Errorf("%x answered with wrong checksums by %x", in, out)
	}
}

// checkHost gives the host a frame: it passes unchanged, is dropped for a reason, is taken
// with its ECN field and MSS changed at most, or is passed on with a changed destination.
func checkHost(t *testing.T, host *model.Host, ingress uint32, now time.Duration,
	frame []byte) model.Result {
	t.Helper()
	before := bytes.Clone(frame)
	got := host.Process(ingress, now, frame)
	if !bytes.Equal(frame, before) {
		t.Fatalf("the frame %x was written to: %x", before, frame)
	}
	if !checkResult(t, ingress, frame, got) {
		return got
	}
	in, out := frame[networkOffset(frame):], got.Frame[networkOffset(got.Frame):]
	if got.Taken {
		in = in[len(in)-len(out):]
		// The ECN field, the MSS, and the checksums of both.
		if changed := differences(in, out); changed > 7 || got.Verdict != model.HandToKernel {
			t.Errorf("%x taken as %x", in, out)
		}
		return got
	}
	if len(in) != len(out) || differences(in[:7], out[:7])+differences(in[8:24],
		out[8:24])+differences(in[40:], out[40:]) > 1 {
		t.Fatalf("%x passed on as %x", in, out)
	}
	limit := in[7]
	switch {
	case got.Reason == model.ReasonHopLimit:
		limit = 1
	case got.Verdict != model.HandToKernel:
		limit--
	}
	if out[7] != limit || got.Reason == model.ReasonHopLimit != (in[7] <= 1) {
		t.Errorf("%x passed on with hop limit %d for %v", in, out[7], got.Reason)
	}
	if to := netip.AddrFrom16([16]byte(out[24:40])); offersTo(to) && selves(in) < pool.MaxChain {
		t.Errorf("%x passed on to the host itself, %v", in, to)
	}
	return got
}

// offersTo reports whether an address is one of the host's SIDs where packets are offered.
func offersTo(to netip.Addr) bool {
	return to == classicSID || netip.PrefixFrom(offerSID, 48).Contains(to) &&
		!netip.PrefixFrom(dt4SID, 64).Contains(to) && !netip.PrefixFrom(dt6SID, 64).Contains(to) &&
		!netip.PrefixFrom(dt46SID, 64).Contains(to)
}

// selves is how often a packet may name the host, by whatever octets.
func selves(packet []byte) int {
	sid, classic := offerSID.As16(), classicSID.As16()
	return bytes.Count(packet, sid[4:6]) + bytes.Count(packet, classic[:])
}

// differences returns how many bytes differ.
func differences(a, b []byte) (count int) {
	for i := range a {
		if a[i] != b[i] {
			count++
		}
	}
	return count
}

// world is what generated frames are made to hit.
func world() packetgen.World {
	return packetgen.World{
		Services: []packetgen.Service{
			{Addr: vip4, Port: 80, Protocol: 6}, {Addr: vip6, Port: 80, Protocol: 6},
			{Addr: vip6, Protocol: 17}, {Addr: vip4, Port: 53, Protocol: 17},
		},
		Block: netip.MustParsePrefix("fcbb:bb00::/32"),
		Offering: []netip.Prefix{netip.PrefixFrom(offerSID, 48),
			netip.PrefixFrom(classicSID, 128)},
		Decapsulating: []netip.Prefix{netip.PrefixFrom(dt4SID, 64), netip.PrefixFrom(dt6SID, 64),
			netip.PrefixFrom(dt46SID, 64)},
		// The last two are the host itself.
		Others: append(addrs("fcbb:bb00:2::", "fcbb:bb00:3::", "fd00:c0de::2"), offerSID,
			classicSID),
		Edge:           edgeAddr,
		Infrastructure: []netip.Addr{edgeAddr},
		Connections: []packetgen.Connection{
			{Flow: web4("").Flow(), SndISN: 1000, RcvISN: 0xffffffff},
			{Flow: web6("").Flow(), SndISN: 0xffffffff, RcvISN: 77},
		},
	}
}

// generatedHost returns a host which has connections of generated frames.
func generatedHost(egress uint32) *model.Host {
	host := newHost(egress)
	host.Sockets = func(tuple flow.Tuple) model.Socket {
		switch tuple {
		case web4("").Flow():
			return model.Socket{State: model.SocketNewSynRecv, SndISN: 1000, RcvISN: 0xffffffff}
		case web6("").Flow():
			return model.Socket{State: model.SocketOther}
		}
		return model.Socket{State: model.SocketState(tuple.SrcPort % 5),
			CookieOK: tuple.SrcPort%8 < 4}
	}
	return host
}

const generatedFrames = 100_000

// TestEdgeInvariants gives edges of all kinds generated frames.
func TestEdgeInvariants(t *testing.T) {
	generator := packetgen.New(1, world())
	for name, encapsulation := range encapsulations {
		t.Run(name, func(t *testing.T) {
			edge := newEdge(t, chain(2, 1, 2, 3), internal)
			edge.Encapsulation = encapsulation
			for i := range generatedFrames {
				ingress := []uint32{external, internal, mixed}[i%3]
				checkEdge(t, edge, ingress, generator.Next())
			}
		})
	}
}

// TestHostInvariants gives a host generated frames, in the course of a hundred seconds.
func TestHostInvariants(t *testing.T) {
	generator := packetgen.New(2, world())
	host := generatedHost(internal)
	for i := range generatedFrames {
		ingress := []uint32{external, internal}[i%2]
		checkHost(t, host, ingress, time.Duration(i)*time.Millisecond, generator.NextHost())
	}
}

// TestEgressInvariants: what leaves keeps its length, and at most the MSS and its checksum
// change.
func TestEgressInvariants(t *testing.T) {
	generator := packetgen.New(3, world())
	host := generatedHost(internal)
	for range generatedFrames {
		frame := generator.Next()
		before := bytes.Clone(frame)
		got := host.Egress(frame, false)
		if !bytes.Equal(frame, before) || len(got) != len(frame) || differences(frame, got) > 4 {
			t.Fatalf("%x left as %x", before, got)
		}
	}
}

// FuzzEdge looks for a frame that makes the edge panic or break an invariant.
func FuzzEdge(f *testing.F) {
	generator := packetgen.New(4, world())
	for i := range 200 {
		f.Add(byte(i), generator.Next())
	}
	f.Fuzz(func(t *testing.T, kind byte, frame []byte) {
		ids := []uint16{1, 2, 3, 4, 5, 6}[:kind>>4%7]
		edge := newEdge(t, chain(min(2, len(ids)), ids...), 1+uint32(kind>>2%4))
		edge.Encapsulation = model.Encapsulation(kind % 3)
		checkEdge(t, edge, 1+uint32(kind%3), frame)
	})
}

// FuzzHost looks for a frame that makes a host panic or break an invariant.
func FuzzHost(f *testing.F) {
	generator := packetgen.New(5, world())
	for i := range 200 {
		f.Add(byte(i), generator.NextHost())
	}
	f.Fuzz(func(t *testing.T, kind byte, frame []byte) {
		host := generatedHost(1 + uint32(kind%4))
		checkHost(t, host, 1+uint32(kind>>2%2), 0, frame)
		if got := host.Egress(frame, false); len(got) != len(frame) {
			t.Errorf("%x left as %x", frame, got)
		}
	})
}
