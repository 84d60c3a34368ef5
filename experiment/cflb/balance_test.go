package cflb

import (
	"bufio"
	"bytes"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/packet/cflb"
)

// The check value of CRC-16/ARC in Koopman's and Williams's catalogues.
func TestCRC16(t *testing.T) {
	if sum := crc16([]byte("123456789")); sum != 0xbb3d {
		t.Errorf("%#x, want 0xbb3d", sum)
	}
}

func synthetic(t *testing.T, packets int) *traffic {
	t.Helper()
	made, err := synthesize(packets, 3)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Shares are those of a walk that takes each flow through the tree by itself, and no packet is
// lost on it.
func TestSpread(t *testing.T) {
	made := synthetic(t, 200_000)
	balancers, err := balancersFor(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range balancers[1:] { // chance draws anew
		found, total := made.spread(b, 2, 3, 1), 0
		want := map[[3]uint32]int{}
		for _, l := range made.loads {
			p, router := made.flows[l.flow], uint32(1)
			for range 2 {
				router = 2*router + uint32(b.choose(p, router))
				p.HopLimit--
			}
			want[[3]uint32{router, l.bin, uint32(b.choose(p, router))}] += int(l.packets)
		}
		for place, bins := range found {
			for bin, counts := range bins {
				for hop, n := range counts {
					total += n
					if w := want[[3]uint32{place + 1, uint32(bin), uint32(hop)}]; n != w {
						t.Fatalf("%s: router %d, bin %d, next hop %d: %d packets, want %d", b.name,
							place+1, bin, hop, n, w)
					}
				}
			}
		}
		if total != made.packets || len(found) > 4 {
			t.Errorf("%s: %d of %d packets at %d routers", b.name, total, made.packets, len(found))
		}
	}
}

// Flows are spread evenly by all methods (chi-square), also behind four routers, but not by CRC16,
// whose later routers repeat the choice of the first.
func TestBalanceOfFlows(t *testing.T) {
	made := synthetic(t, 300_000)
	for _, hops := range []int{2, 4} {
		balancers, err := balancersFor(hops)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range balancers {
			leaves := map[uint32]int{}
			for _, p := range made.flows {
				place := uint32(0)
				for range inRow {
					place = place*uint32(hops) + 1 + uint32(b.choose(p, place+1))
					p.HopLimit--
				}
				leaves[place]++
			}
			all := math.Pow(float64(hops), inRow)
			square, want := 0., float64(len(made.flows))/all
			for _, n := range leaves {
				square += (float64(n) - want) * (float64(n) - want) / want
			}
			square += want * (all - float64(len(leaves)))
			bound := all - 1 + 4*math.Sqrt(2*(all-1)) // 4 standard deviations
			if polarized := b.name == "crc16"; (square > bound) != polarized {
				t.Errorf("%s, %d next hops: chi-square %.0f, bound %.0f, %d of %.0f leaves", b.name,
					hops, square, bound, len(leaves), all)
			}
		}
	}
}

// A balancer that sends all to one next hop deviates by the rest.
func TestDeviations(t *testing.T) {
	made := synthetic(t, 100_000)
	one := balancer{"one", func(cflb.Packet, uint32) int { return 1 }}
	for _, d := range made.spread(one, 4, 1, 10*binsPerSecond).deviations() {
		if d != 75 {
			t.Errorf("%v %%, want 75", d)
		}
	}
	s := shares{0: {{60, 40}, {5, 4}}, 1: {{250, 750}}}
	if d := s.deviations(); len(d) != 2 || d[0] != 10 || d[1] != 25 {
		t.Errorf("%v, want 10 and 25: the bin of nine packets says nothing", d)
	}
}

// Flows send what their sizes say, if they begin and end in time, and are found at each bin.
func TestSend(t *testing.T) {
	made := &traffic{bins: 20}
	made.send(0, 0.25, 7, 10) // at 0.25, 0.35, ...
	made.send(1, -1, 25, 10)  // of which 10 are sent before
	made.send(2, 9.9, 50, 100)
	got := map[uint32][]uint32{}
	for _, l := range made.loads {
		got[l.flow] = append(got[l.flow], l.bin, l.packets)
	}
	for flow, want := range [][]uint32{{0, 3, 1, 4}, {0, 5, 1, 5, 2, 5}, {19, 10}} {
		if len(got[uint32(flow)]) != len(want) {
			t.Fatalf("flow %d: bins and packets %v, want %v", flow, got[uint32(flow)], want)
		}
		for i := range want {
			if got[uint32(flow)][i] != want[i] {
				t.Errorf("flow %d: bins and packets %v, want %v", flow, got[uint32(flow)], want)
			}
		}
	}
}

// frame writes a packet of a flow for a capture.
func frame(t *testing.T, p cflb.Packet, flags layers.IPv4Flag) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6),
		EthernetType: layers.EthernetTypeIPv4}
	var ip gopacket.SerializableLayer = &layers.IPv4{Version: 4, TTL: p.HopLimit, Flags: flags,
		Protocol: layers.IPProtocol(p.Protocol), SrcIP: p.Src.AsSlice(), DstIP: p.Dst.AsSlice()}
	if p.Src.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: p.HopLimit, FlowLabel: p.FlowLabel,
			NextHeader: layers.IPProtocol(p.Protocol), SrcIP: p.Src.AsSlice(),
			DstIP: p.Dst.AsSlice()}
	}
	all := []gopacket.SerializableLayer{eth, ip}
	switch p.Protocol {
	case 6:
		all = append(all, &layers.TCP{SrcPort: layers.TCPPort(p.SrcPort),
			DstPort: layers.TCPPort(p.DstPort)})
	case 17:
		all = append(all, &layers.UDP{SrcPort: layers.UDPPort(p.SrcPort),
			DstPort: layers.UDPPort(p.DstPort)})
	}
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true},
		all...); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// A capture gives the flows that were written into it, at their times: TCP and UDP, both families,
// a fragment without ports, frames that are no IP, and one that is cut behind its headers.
func TestCapture(t *testing.T) {
	addr := netip.MustParseAddr
	tcp := cflb.Packet{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Protocol: 6, HasPorts: true,
		SrcPort: 1000, DstPort: 80, HopLimit: 60}
	udp := cflb.Packet{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), Protocol: 17,
		HasPorts: true, SrcPort: 53, DstPort: 5353, HopLimit: 64, FlowLabel: 0xabcde}
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1_700_000_000, 0)
	for _, one := range []struct {
		after time.Duration
		frame []byte
		cut   int
	}{
		{0, frame(t, tcp, 0), 0}, {time.Millisecond, frame(t, udp, 0), 0},
		{600 * time.Millisecond, frame(t, tcp, 0), 0}, {time.Second, frame(t, tcp, 0), 0},
		{time.Second, frame(t, tcp, layers.IPv4MoreFragments), 0},
		{time.Second, append(make([]byte, 12), 8, 6, 0, 0), 0}, // ARP
		{1400 * time.Millisecond, append(frame(t, udp, 0), make([]byte, 100)...), 70},
	} {
		info := gopacket.CaptureInfo{Timestamp: begin.Add(one.after), Length: len(one.frame),
			CaptureLength: len(one.frame)}
		if one.cut > 0 {
			info.CaptureLength = one.cut
		}
		if err := w.WritePacket(info, one.frame[:info.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	read, err := trafficOf(bufio.NewReader(&file))
	if err != nil {
		t.Fatal(err)
	}
	fragment := tcp
	fragment.HasPorts, fragment.SrcPort, fragment.DstPort = false, 0, 0
	got := map[cflb.Packet]map[uint32]uint32{}
	for _, l := range read.loads {
		if got[read.flows[l.flow]] == nil {
			got[read.flows[l.flow]] = map[uint32]uint32{}
		}
		got[read.flows[l.flow]][l.bin] += l.packets
	}
	if read.packets != 6 || read.bins != 3 || len(got) != 3 || got[tcp][0] != 1 ||
		got[tcp][1] != 1 || got[tcp][2] != 1 || got[udp][0] != 1 || got[udp][2] != 1 ||
		got[fragment][2] != 1 {
		t.Errorf("%d packets in %d bins: %v", read.packets, read.bins, got)
	}
}

// A file that is none is refused with what would do.
func TestCaptureErrors(t *testing.T) {
	folder := t.TempDir()
	for name, one := range map[string]struct{ text, want string }{
		"empty": {"", "the file is empty"}, "text": {"no packets here, 24 octets or more",
			"give a pcap or pcapng file"}, "cut": {"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" +
			strings.Repeat("\x00", 8) + "\xff\xff\x00\x00\x01\x00\x00\x00", "no IP packets"},
	} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(one.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readCapture(file); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: error %v, want %q", name, err, one.want)
		}
	}
	if _, err := readCapture(filepath.Join(folder, "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// Figures 6 and 7 run on few packets, and say what they compare.
func TestBalanceFigures(t *testing.T) {
	for _, e := range []experiment.Experiment{figure6, figure7} {
		file, err := experiment.Conduct(t.Context(), e, experiment.Options{Folder: t.TempDir(),
			Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "cflb-fig6" {
			experimenttest.Has(t, string(text), "![fig6b-4](fig6b-4.svg)",
				"| crc16 | 100 | 50.00 | 50.00 | 50.00 |")
		} else {
			experimenttest.Has(t, string(text), "![fig7-4-md5](fig7-4-md5.svg)",
				"![fig7-2-rc5](fig7-2-rc5.svg)")
		}
	}
}
