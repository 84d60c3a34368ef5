package probe

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sextant/srv6"
)

var everyTen = Settings{Interval: 10 * time.Millisecond, Missed: 3, Good: 3}

// A timeline of intervals: "." is a probe that comes back at once, "x" one that does not. Below it are the changes.
func TestTracker(t *testing.T) {
	for _, c := range []struct{ name, probes, changes string }{
		{"good from the start", ".....", "+    "},
		{"two misses are forgiven", ".xx.xx.", "+      "},
		{"the third is not", ".xxx.", "+  - "},
		{"up after three", "....xxxx......", "+     -   +   "},
		{"a miss does not begin anew", "....xxxx.x.x..", "+     -     + "},
		{"a gap does", "....xxxx..xxxx...", "+     -         +"},
		{"one that never answers has a second", strings.Repeat("x", 102), strings.Repeat(" ", 99) + "-  "},
	} {
		judge := tracker{settings: everyTen}
		got := ""
		for _, probe := range c.probes {
			number, changed := judge.sent(), false
			if probe == '.' {
				changed = judge.came(number, time.Millisecond)
			}
			changed = judge.judge() || changed
			switch {
			case !changed:
				got += " "
			case judge.Answers:
				got += "+"
			default:
				got += "-"
			}
		}
		if got != c.changes {
			t.Errorf("%s:\n%s\n%s, want\n%s", c.name, c.probes, got, c.changes)
		}
	}
}

// A long round trip is no silence: answers come as often as probes leave.
func TestLongWays(t *testing.T) {
	judge := tracker{settings: everyTen}
	const trip = 50 // intervals
	for i := range uint32(500) {
		judge.sent()
		changed := i >= trip && judge.came(i-trip, trip*everyTen.Interval)
		changed = judge.judge() || changed
		if changed != (i == trip) {
			t.Fatalf("interval %d: changed %v, answers %v", i, changed, judge.Answers)
		}
	}
	if s := judge.stats(); s.LossPermille != 0 || s.RTT != trip*everyTen.Interval || s.Received != 450 {
		t.Errorf("%+v", s)
	}
}

func TestLossAndStrangeNumbers(t *testing.T) {
	judge := tracker{settings: everyTen}
	for i := range 3000 {
		number := judge.sent()
		if i%4 != 0 {
			judge.came(number, time.Duration(i)*time.Microsecond)
			judge.came(number, time.Hour)       // twice
			judge.came(number+1, time.Hour)     // not sent yet
			judge.came(number-2000, time.Hour)  // long ago
			judge.came(number+1<<31, time.Hour) // never
		}
	}
	s := judge.stats()
	if s.LossPermille != 250 || s.Received != 2250 || s.Least != time.Microsecond || s.Most != 2999*time.Microsecond {
		t.Errorf("%+v", s)
	}
}

// Probes are what an independent library takes for the packet that is meant, checksum included.
func TestPacket(t *testing.T) {
	own := netip.MustParseAddr("fd00:5e::1")
	segments := []netip.Addr{netip.MustParseAddr("fcbb:bb00:2::"), netip.MustParseAddr("fcbb:bb00:3:e001::"), netip.MustParseAddr("fcbb:bb00:4:f::")}
	want := payload{cookie: 0x1234567890abcdef, list: 7, number: 1<<32 - 2, left: 5 * time.Second}
	for count := 1; count <= len(segments); count++ {
		outer, err := headers(own, segments[:count])
		if err != nil {
			t.Fatal(err)
		}
		bytesOf := packet(outer, own, want)
		decoded := gopacket.NewPacket(bytesOf, layers.LayerTypeIPv6, gopacket.Default)
		first := decoded.NetworkLayer().(*layers.IPv6)
		if int(first.Length) != len(bytesOf)-ipv6Header || !first.DstIP.Equal(segments[0].AsSlice()) {
			t.Errorf("%d segments: %v", count, first)
		}
		inner := bytesOf[ipv6Header:]
		if count > 1 {
			srh, size, err := srv6.ParseSRH(inner)
			if err != nil || len(srh.Segments) != count-1 || srh.SegmentsLeft != uint8(count-1) || first.NextHeader != layers.IPProtocolIPv6Routing {
				t.Fatalf("%d segments: %+v, %v", count, srh, err)
			}
			inner = inner[size:]
		}
		again := gopacket.NewPacket(inner, layers.LayerTypeIPv6, gopacket.Default)
		udp, ok := again.TransportLayer().(*layers.UDP)
		if !ok || udp.DstPort != Port {
			t.Fatalf("%d segments: %v", count, again)
		}
		if got, ok := parsePayload(udp.Payload); !ok || got != want {
			t.Errorf("%d segments: %+v", count, got)
		}
		sum := bytes.Clone(udp.Contents[6:8])
		if err := udp.SetNetworkLayerForChecksum(again.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		buffer := gopacket.NewSerializeBuffer()
		err = gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{ComputeChecksums: true}, udp, gopacket.Payload(udp.Payload))
		if err != nil || !bytes.Equal(buffer.Bytes()[6:8], sum) {
			t.Errorf("%d segments: checksum %x, want %x", count, sum, buffer.Bytes()[6:8])
		}
	}
	if _, err := headers(own, nil); err == nil {
		t.Error("a list without segments got headers")
	}
}

func FuzzPayload(f *testing.F) {
	f.Add(payload{cookie: 1, list: 2, number: 3, left: 4}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parsePayload(b); ok && !bytes.Equal(p.append(nil), b) {
			t.Errorf("%x is read as %+v", b, p)
		}
	})
}
