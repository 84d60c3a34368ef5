package pathprobe

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

var everyTen = Settings{Interval: 10 * time.Millisecond, Missed: 3, Good: 3}

const half = 5 * time.Millisecond

// fate is how long a probe that leaves at a time takes; negative: it is lost.
type fate func(left time.Duration) time.Duration

// arrives is when a probe of a list is back.
type arrives struct {
	list   int
	number uint32
	at     time.Duration
}

// simulate probes lists as a prober does, by the clock, and returns what is noticed when, like "15
// 0- 20 0+", in milliseconds. In stalls, begin and end, the prober does not run.
func simulate(settings Settings, lasts time.Duration, fates []fate,
	stalls ...[2]time.Duration) string {
	var group []*tracker
	for range fates {
		group = append(group, &tracker{settings: settings})
	}
	var underWay []arrives
	var said []string
	say := func(now time.Duration, list int, sign string) {
		said = append(said, fmt.Sprintf("%d %d%s", now.Milliseconds(), list, sign))
	}
	for now, turn := time.Duration(0), 0; now < lasts; now, turn = now+settings.Interval/2, turn+1 {
		for _, s := range stalls {
			if now >= s[0] && now < s[1] {
				now = s[1]
			}
		}
		var left []arrives
		for _, a := range underWay {
			if a.at > now {
				left = append(left, a)
			} else if group[a.list].came(a.number, max(a.at, now-time.Millisecond)) {
				say(now, a.list, "+")
			}
		}
		underWay = left
		doubted := false
		for _, fallen := range silenced(group, now) {
			for i, t := range group {
				if t == fallen {
					say(now, i, "-")
				}
			}
		}
		for _, t := range group {
			doubted = doubted || t.doubted(now)
		}
		if turn%2 == 1 && !doubted {
			continue
		}
		for i, t := range group {
			number := t.sent(now, turn%2 == 0)
			if took := fates[i](now); took >= 0 {
				underWay = append(underWay, arrives{i, number, now + took})
			}
		}
	}
	return strings.Join(said, " ")
}

// healthy is a list over which probes take 1 ms.
func healthy(time.Duration) time.Duration { return time.Millisecond }

// cutFrom loses what leaves in a time, in milliseconds.
func cutFrom(begin, end time.Duration) fate {
	return func(left time.Duration) time.Duration {
		if left >= begin*time.Millisecond && left < end*time.Millisecond {
			return -1
		}
		return time.Millisecond
	}
}

const ever = 1 << 20

// What is noticed, and when. Probes leave at 0, 10, 20 ms, and every 5 ms while one is missing.
func TestSilence(t *testing.T) {
	const begin = "5 0+ 5 1+"
	slow := func(at, took, then time.Duration) fate {
		return func(left time.Duration) time.Duration {
			if left < at*time.Millisecond {
				return took * time.Millisecond
			}
			return then * time.Millisecond
		}
	}
	for _, c := range []struct {
		name   string
		fates  []fate
		stalls [][2]time.Duration
		want   string
	}{
		{"good from the start", []fate{healthy, healthy}, nil, begin},
		{"cut: 15 ms after the first probe that is lost", []fate{cutFrom(300, ever), healthy}, nil,
			begin + " 315 0-"},
		{"the first just came through", []fate{cutFrom(301, ever), healthy}, nil,
			begin + " 325 0-"},
		{"two misses are forgiven", []fate{cutFrom(300, 310), healthy}, nil, begin},
		{"answers again after three", []fate{cutFrom(300, 400), healthy}, nil,
			begin + " 315 0- 425 0+"},
		{"alone, a list has to miss twice as many", []fate{cutFrom(300, ever)}, nil, "5 0+ 330 0-"},
		{"all of them fall silent together", []fate{cutFrom(300, ever), cutFrom(300, ever)}, nil,
			begin + " 330 0- 330 1-"},
		{"the way back fails when some are on it", []fate{cutFrom(300, ever), cutFrom(310, ever)},
			nil, begin + " 340 0- 340 1-"},
		{"the way back fails, and one list is much longer",
			[]fate{slow(299, 1, -1), func(left time.Duration) time.Duration {
				if left > 250*time.Millisecond {
					return -1
				}
				return 50 * time.Millisecond
			}}, nil, "5 0+ 50 1+ 355 0- 355 1-"},
		{"the other list is much longer", []fate{cutFrom(300, ever), slow(ever, 50, 50)}, nil,
			"5 0+ 50 1+ 330 0-"},
		{"two of three", []fate{cutFrom(300, ever), cutFrom(300, ever), healthy}, nil,
			"5 0+ 5 1+ 5 2+ 315 0- 315 1-"},
		{"one that never answers has a second", []fate{healthy, cutFrom(0, ever)}, nil,
			"5 0+ 1000 1-"},
		{"a prober that stands still has read what came", []fate{healthy, healthy},
			[][2]time.Duration{{201 * time.Millisecond, 250 * time.Millisecond},
				{301 * time.Millisecond, 400 * time.Millisecond}}, begin},
		{"a long way is no silence", []fate{slow(ever, 500, 500), healthy}, nil, "5 1+ 500 0+"},
		{"nor is a way that becomes longer, by less than would be taken for it",
			[]fate{slow(300, 1, 12), healthy}, nil, begin},
		{"a way that becomes much longer is silent for so long", []fate{slow(300, 1, 40), healthy},
			nil, begin + " 315 0- 350 0+"},
		{"cut while times vary so much that nothing is overdue: as soon as another list is heard " +
			"that long after",
			[]fate{varying(300), varying(ever)}, nil, begin + " 335 0-"},
		{"a machine that stands still: nothing comes for 25 ms, over any list",
			[]fate{halted(300, 325), halted(300, 325)}, nil, begin},
	} {
		if got := simulate(everyTen, 2*time.Second, c.fates, c.stalls...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// varying takes 1 or 20 ms, until it is cut.
func varying(cut time.Duration) fate {
	return func(left time.Duration) time.Duration {
		switch {
		case left >= cut*time.Millisecond:
			return -1
		case left%(50*time.Millisecond) >= 20*time.Millisecond &&
			left%(50*time.Millisecond) < 30*time.Millisecond:
			return 20 * time.Millisecond
		}
		return time.Millisecond
	}
}

// halted keeps what is under way in a time until its end.
func halted(begin, end time.Duration) fate {
	return func(left time.Duration) time.Duration {
		if left >= begin*time.Millisecond && left < end*time.Millisecond {
			return end*time.Millisecond + time.Millisecond - left
		}
		return time.Millisecond
	}
}

// Whatever the round-trip times, and when the cut is: a list is silent three half intervals after
// the first probe that is lost, or a few more, and no other one is.
func TestCutIsNoticedInTime(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		took := time.Duration(rapid.IntRange(100, 4000).Draw(r, "RTT in us")) * time.Microsecond
		at := time.Duration(rapid.IntRange(200_000, 250_000).Draw(r,
			"cut in us")) * time.Microsecond
		jitter := rapid.SliceOfN(rapid.IntRange(0, 500), 7, 7).Draw(r, "jitter in us")
		delay := func(left time.Duration) time.Duration {
			return took + time.Duration(jitter[left/half%7])*time.Microsecond
		}
		cut := func(left time.Duration) time.Duration {
			if left >= at {
				return -1
			}
			return delay(left)
		}
		got := simulate(everyTen, 400*time.Millisecond, []fate{delay, cut, delay})
		var when, list int
		events := strings.Fields(got)
		if len(events) != 8 || !strings.HasSuffix(got, " 1-") {
			r.Fatalf("%s", got)
		}
		if _, err := fmt.Sscanf(strings.Join(events[6:], " "), "%d %d-", &when, &list); err != nil {
			r.Fatal(err)
		}
		if after := time.Duration(when)*time.Millisecond - at; after < 3*half-time.Millisecond ||
			after > 7*half {
			r.Fatalf("cut at %v, silent after %v", at, after)
		}
	})
}

func TestLossAndStrangeNumbers(t *testing.T) {
	judge := tracker{settings: everyTen}
	for i := range 3000 {
		number := judge.sent(0, true)
		if i%4 != 0 {
			judge.came(number, time.Duration(i)*time.Microsecond)
			judge.came(number, time.Hour)       // twice
			judge.came(number+1, time.Hour)     // not sent yet
			judge.came(number-2000, time.Hour)  // long ago
			judge.came(number+1<<31, time.Hour) // never
		}
	}
	s := judge.stats()
	if s.LossPermille != 250 || s.Received != 2250 || s.Least != time.Microsecond ||
		s.Most != 2999*time.Microsecond {
		t.Errorf("%+v", s)
	}
}

// Probes are what an independent library takes for the packet that is meant, checksum included.
func TestPacket(t *testing.T) {
	own := netip.MustParseAddr("fd00:5e::1")
	segments := []netip.Addr{netip.MustParseAddr("fcbb:bb00:2::"),
		netip.MustParseAddr("fcbb:bb00:3:e001::"), netip.MustParseAddr("fcbb:bb00:4:f::")}
	want := payload{cookie: 0x1234567890abcdef, list: 7, number: 1<<32 - 2}
	for count := 1; count <= len(segments); count++ {
		outer, err := headers(own, segments[:count])
		if err != nil {
			t.Fatal(err)
		}
		bytesOf := packet(outer, own, want)
		decoded := gopacket.NewPacket(bytesOf, layers.LayerTypeIPv6, gopacket.Default)
		first := decoded.NetworkLayer().(*layers.IPv6)
		if int(first.Length) != len(bytesOf)-ipv6Header ||
			!first.DstIP.Equal(segments[0].AsSlice()) {
			t.Errorf("%d segments: %v", count, first)
		}
		inner := bytesOf[ipv6Header:]
		if count > 1 {
			srh, size, err := srv6.ParseSRH(inner)
			if err != nil || len(srh.Segments) != count-1 || srh.SegmentsLeft != uint8(count-1) ||
				first.NextHeader != layers.IPProtocolIPv6Routing {
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
		err = gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{ComputeChecksums: true},
			udp, gopacket.Payload(udp.Payload))
		if err != nil || !bytes.Equal(buffer.Bytes()[6:8], sum) {
			t.Errorf("%d segments: checksum %x, want %x", count, sum, buffer.Bytes()[6:8])
		}
	}
	if _, err := headers(own, nil); err == nil {
		t.Error("a list without segments got headers")
	}
}

func FuzzPayload(f *testing.F) {
	f.Add(payload{cookie: 1, list: 2, number: 3}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parsePayload(b); ok && !bytes.Equal(p.append(nil), b) {
			t.Errorf("%x is read as %+v", b, p)
		}
	})
}
