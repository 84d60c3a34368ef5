package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

// cflbNetworks are the parameters under which the programs are compared with the model: every set
// of fields, every cipher, radices that are powers of two and others.
var cflbNetworks = []struct{ ipv4, ipv6 cflb.Parameters }{
	{cflb.Parameters{}, cflb.Parameters{}},
	{cflb.Parameters{Fields: cflb.BothPorts, Radix: 4}, cflb.Parameters{Fields: cflb.FlowLabel,
		Radix: 4}},
	{cflb.Parameters{Fields: cflb.SourcePort, Radix: 16},
		cflb.Parameters{Fields: cflb.FlowLabelSourcePort, Radix: 16}},
	{cflb.Parameters{Fields: cflb.BothPorts, Radix: 3, Cipher: cflb.RC5},
		cflb.Parameters{Fields: cflb.FlowLabelBothPorts, Radix: 8}},
	{cflb.Parameters{Fields: cflb.BothPorts, Radix: 8, Cipher: cflb.Skip32},
		cflb.Parameters{Fields: cflb.BothPorts, Radix: 256}},
	{cflb.Parameters{Fields: cflb.SourcePort, Radix: 5}, cflb.Parameters{Fields: cflb.FlowLabel,
		Radix: 7}},
	{cflb.Parameters{Fields: cflb.SourcePort, Radix: 2, Length: 3},
		cflb.Parameters{Fields: cflb.FlowLabelBothPorts, Radix: 200}},
	{
		cflb.Parameters{Fields: cflb.BothPorts, Radix: 10, Range: cflb.ModuloRange},
		cflb.Parameters{Fields: cflb.FlowLabelSourcePort, Radix: 11, Range: cflb.ModuloRange},
	},
	{cflb.Parameters{Fields: cflb.FlowLabel, Radix: 4}, cflb.Parameters{Fields: cflb.SourcePort,
		Radix: 4, Length: 1}},
	{cflb.Parameters{Fields: cflb.BothPorts, Radix: 64, Cipher: cflb.RC5},
		cflb.Parameters{Fields: cflb.BothPorts, Radix: 9, Cipher: cflb.Skip32}},
}

// A million packets get the same next hop, the same bytes and the same counters from the program
// and from the model.
func TestCFLBDifferential(t *testing.T) {
	w := newWorld(t)
	packets := 1000000 / len(cflbNetworks)
	if testing.Short() {
		packets /= 10
	}
	seen := map[string]int{}
	for i, network := range cflbNetworks {
		w.run(t, fmt.Sprintf("%s,%d/%s,%d", network.ipv4.Fields, network.ipv4.Radix,
			network.ipv6.Fields, network.ipv6.Radix), func(t *testing.T) {
			g := newCFLBGenerator(t, w, uint64(i), network.ipv4, network.ipv6)
			r := openCFLB(t, w, g.model, false)
			for range 2 { // another table while the program runs
				must(t, r.SetTable(g.table()))
				compareCFLB(t, w, r, g, packets/2, seen)
			}
		})
	}
	for _, what := range []string{"controlled", "beyond the next hops", "no selector",
		"no controllable fields", "to the kernel", "turned round"} {
		if seen[what] < packets/100 {
			t.Errorf("%d packets: %s; the generator does not reach it: %v", seen[what], what, seen)
		}
	}
}

func openCFLB(t testing.TB, w *world, m *model.CFLB, kernel bool) *CFLB {
	t.Helper()
	r, err := OpenCFLB(t.TempDir(), CFLBConfig{IPv4: m.IPv4, IPv6: m.IPv6, Router: m.Router,
		Kernel: kernel})
	must(t, err)
	t.Cleanup(r.Close)
	for _, index := range []int{w.near, w.far} {
		must(t, r.maps["ports"].Put(uint32(index), uint32(index)))
	}
	return r
}

func compareCFLB(t *testing.T, w *world, r *CFLB, g *cflbGenerator, packets int,
	seen map[string]int) {
	t.Helper()
	before, err := r.Choices()
	must(t, err)
	want := maps.Clone(before)
	run := newRunner(r.programs["cflb"], w.near)
	for range packets {
		frame := g.frame()
		result := g.model.Forward(frame)
		expected := uint32(xdpPass)
		switch {
		case !result.Forwarded:
			seen["to the kernel"]++
		case result.Interface == uint32(w.near):
			expected = xdpTransmit
			seen["turned round"]++
		default:
			expected = xdpRedirect
		}
		if result.Forwarded {
			want[result.Choice]++
			seen[result.Choice.String()]++
		}
		verdict, after := run.run(t, frame)
		if verdict != expected || !bytes.Equal(after, result.Frame) {
			t.Fatalf("program %d, model %d: %+v\nframe   %x\nprogram %x\nmodel   %x", verdict,
				expected, result, frame, after, result.Frame)
		}
	}
	got, err := r.Choices()
	must(t, err)
	if !maps.Equal(got, want) {
		t.Errorf("choices: program %v, model %v, before %v", got, want, before)
	}
}

// cflbGenerator makes tables, and frames that meet them.
type cflbGenerator struct {
	t     testing.TB
	rng   *rand.Rand
	w     *world
	model *model.CFLB
	// What stands behind the prefixes of the last table.
	sources, destinations map[bool][]netip.Addr // by whether IPv4
}

func newCFLBGenerator(t testing.TB, w *world, seed uint64, ipv4,
	ipv6 cflb.Parameters) *cflbGenerator {
	g := &cflbGenerator{t: t, rng: rand.New(rand.NewPCG(seed, 1)), w: w,
		model: &model.CFLB{Router: uint32(seed) * 0x9e3779b9}}
	for _, p := range []*cflb.Parameters{&ipv4, &ipv6} {
		binary.BigEndian.PutUint64(p.Key[:], g.rng.Uint64())
		binary.BigEndian.PutUint64(p.Key[8:], g.rng.Uint64())
	}
	var err error
	g.model.IPv4, err = cflb.New(ipv4)
	must(t, err)
	g.model.IPv6, err = cflb.New(ipv6)
	must(t, err)
	return g
}

// table makes a new table for the model and returns it: nested prefixes with groups of all sizes
// and kinds.
func (g *cflbGenerator) table() model.CFLBTable {
	table := model.CFLBTable{Routes: map[netip.Prefix]int{}}
	g.sources, g.destinations = map[bool][]netip.Addr{}, map[bool][]netip.Addr{}
	for range 24 {
		is4 := g.rng.IntN(2) == 0
		address := g.address(is4)
		prefix := netip.PrefixFrom(address, g.rng.IntN(address.BitLen()-7)+8).Masked()
		if g.rng.IntN(5) == 0 {
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		g.destinations[is4] = append(g.destinations[is4], address)
		g.sources[is4] = append(g.sources[is4], g.address(is4))
		table.Routes[prefix] = model.CFLBKernel
		if g.rng.IntN(6) > 0 {
			codec := g.model.IPv6
			if is4 {
				codec = g.model.IPv4
			}
			table.Routes[prefix] = len(table.Groups)
			table.Groups = append(table.Groups, g.group(int(codec.Parts().Radix)))
		}
	}
	m, err := model.NewCFLB(g.model.IPv4, g.model.IPv6, g.model.Router, table)
	must(g.t, err)
	g.model = m
	return table
}

func (g *cflbGenerator) group(radix int) []model.CFLBNextHop {
	hops := make([]model.CFLBNextHop, 1+g.rng.IntN(min(radix, cflbNextHops)))
	equal := g.rng.IntN(2) == 0
	for i := range hops {
		hop := &hops[i]
		hop.Interface, hop.Weight, hop.MTU, hop.Ready = uint32(g.w.far), 1, 1500, g.rng.IntN(20) > 0
		if g.rng.IntN(3) == 0 {
			hop.Interface = uint32(g.w.near)
		}
		if !equal {
			hop.Weight = uint32(g.rng.IntN(5))
		}
		if g.rng.IntN(8) == 0 {
			hop.MTU = uint16(40 + g.rng.IntN(200))
		}
		binary.BigEndian.PutUint16(hop.Source[4:], uint16(i))
		binary.BigEndian.PutUint32(hop.Destination[2:], g.rng.Uint32())
	}
	return hops
}

func (g *cflbGenerator) address(is4 bool) netip.Addr {
	var octets [16]byte
	binary.BigEndian.PutUint64(octets[:], g.rng.Uint64())
	binary.BigEndian.PutUint64(octets[8:], g.rng.Uint64())
	if is4 {
		octets[0] = 1 + octets[0]%126
		return netip.AddrFrom4([4]byte(octets[:4]))
	}
	octets[0] = 0x20 | octets[0]&0x1f
	return netip.AddrFrom16(octets)
}

// frame makes a frame: usually of a packet that a router forwards, of which every second was
// steered.
func (g *cflbGenerator) frame() []byte {
	is4 := g.rng.IntN(2) == 0
	p := cflb.Packet{
		Protocol: []uint8{6, 6, 17, 17, 1, 58, 50, 44, 43, 0, 132}[g.rng.IntN(11)],
		SrcPort:  uint16(g.rng.Uint32()), DstPort: uint16(g.rng.Uint32()),
		HopLimit: uint8(g.rng.Uint32()),
	}
	if g.rng.IntN(4) > 0 {
		p.FlowLabel = g.rng.Uint32N(1 << 20)
	}
	p.HasPorts = p.Protocol == 6 || p.Protocol == 17
	p.Src, p.Dst = g.one(g.sources[is4], is4), g.one(g.destinations[is4], is4)
	if g.rng.IntN(2) == 0 {
		p = g.steer(p)
	}
	frame := g.build(p)
	if g.rng.IntN(8) == 0 {
		g.spoil(frame)
	}
	if g.rng.IntN(16) == 0 {
		frame = frame[:max(14, g.rng.IntN(len(frame)+1))]
	}
	return frame
}

func (g *cflbGenerator) one(known []netip.Addr, is4 bool) netip.Addr {
	if len(known) == 0 || g.rng.IntN(16) == 0 {
		return g.address(is4)
	}
	return known[g.rng.IntN(len(known))]
}

// steer gives the packet a selector for a next hop at its hop limit, where there can be one.
func (g *cflbGenerator) steer(p cflb.Packet) cflb.Packet {
	codec := g.model.IPv6
	if p.Src.Is4() {
		codec = g.model.IPv4
	}
	path := []cflb.Hop{{HopLimit: p.HopLimit, Index: g.rng.IntN(int(codec.Parts().Radix))}}
	if !p.HasPorts || codec.Variants(path) == 0 {
		return p
	}
	packets, err := codec.Selectors(p, path, g.rng.Uint64())
	if err != nil {
		return p
	}
	for steered := range packets {
		return steered
	}
	return p
}

// build writes the packet with 8 octets of transport header and some data.
func (g *cflbGenerator) build(p cflb.Packet) []byte {
	data := 8 + g.rng.IntN(180)
	frame := make([]byte, 14, 14+60+data)
	binary.BigEndian.PutUint64(frame[2:], g.rng.Uint64())
	frame[0] = 2
	if p.Src.Is4() {
		src, dst := p.Src.As4(), p.Dst.As4()
		binary.BigEndian.PutUint16(frame[12:], 0x0800)
		ip := make([]byte, 20)
		ip[0], ip[8], ip[9] = 0x45, p.HopLimit, p.Protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(20+data))
		if g.rng.IntN(8) == 0 {
			binary.BigEndian.PutUint16(ip[6:], uint16(g.rng.Uint32()))
		}
		copy(ip[12:], src[:])
		copy(ip[16:], dst[:])
		if g.rng.IntN(64) > 0 {
			binary.BigEndian.PutUint16(ip[10:], headerSum(ip))
		}
		frame = append(frame, ip...)
	} else {
		src, dst := p.Src.As16(), p.Dst.As16()
		binary.BigEndian.PutUint16(frame[12:], 0x86dd)
		ip := make([]byte, 40)
		binary.BigEndian.PutUint32(ip, 6<<28|g.rng.Uint32N(256)<<20|p.FlowLabel)
		binary.BigEndian.PutUint16(ip[4:], uint16(data))
		ip[6], ip[7] = p.Protocol, p.HopLimit
		copy(ip[8:], src[:])
		copy(ip[24:], dst[:])
		frame = append(frame, ip...)
	}
	transport := make([]byte, data)
	binary.BigEndian.PutUint16(transport, p.SrcPort)
	binary.BigEndian.PutUint16(transport[2:], p.DstPort)
	return append(frame, transport...)
}

// headerSum is the checksum of an IPv4 header, with end-around carries one by one (RFC 791).
func headerSum(ip []byte) uint16 {
	var sum uint16
	for i := 0; i < len(ip); i += 2 {
		word := uint16(ip[i])<<8 | uint16(ip[i+1])
		sum += word
		if sum < word {
			sum++
		}
	}
	return ^sum
}

// spoil makes the frame one that a router treats otherwise: group addresses, odd lengths, options,
// other EtherTypes.
func (g *cflbGenerator) spoil(frame []byte) {
	at := []int{0, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 26, 30, 38}[g.rng.IntN(14)]
	frame[at] = []byte{0, 1, 2, 0x45, 0x46, 0x60, 127, 0xe0, 0xfe, 0xff,
		byte(g.rng.Uint32())}[g.rng.IntN(11)]
	if binary.BigEndian.Uint16(frame[12:]) == 0x0800 && g.rng.IntN(2) == 0 {
		binary.BigEndian.PutUint16(frame[24:], 0)
		binary.BigEndian.PutUint16(frame[24:], headerSum(frame[14:34]))
	}
}
