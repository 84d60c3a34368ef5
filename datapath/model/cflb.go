package model

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"sextant/packet/cflb"
)

// A CFLBNextHop is one of the equal-cost next hops of a destination. Its index in the group is the
// number by which sources choose it.
type CFLBNextHop struct {
	Interface   uint32 // index
	Weight      uint32 // 0: down
	MTU         uint16
	Ready       bool    // the addresses are known; else the kernel finds them out
	Source      [6]byte // of frames to it
	Destination [6]byte
	// KernelHash is the hash of a packet with which the kernel takes this next hop.
	KernelHash uint32
}

// A CFLBTable is what a router with controllable load balancing forwards by.
type CFLBTable struct {
	Groups [][]CFLBNextHop
	// Routes leads prefixes to the number of a group, or to CFLBKernel.
	Routes map[netip.Prefix]int
}

// CFLBKernel stands in a CFLBTable for destinations of which the kernel knows what to do: local
// ones, one next hop alone.
const CFLBKernel = -1

// CFLB is what bpf/cflb.c does to a frame, in Go.
type CFLB struct {
	IPv4, IPv6 *cflb.Codec
	Router     uint32
	Table      CFLBTable
	groups     []*cflb.Group // of each of Table.Groups, for its family's codec
}

// NewCFLB prepares a table. It returns an error if a group has more next hops than the selectors of
// its family can name.
func NewCFLB(ipv4, ipv6 *cflb.Codec, router uint32, table CFLBTable) (*CFLB, error) {
	m := &CFLB{IPv4: ipv4, IPv6: ipv6, Router: router, Table: table,
		groups: make([]*cflb.Group, len(table.Groups))}
	for prefix, number := range table.Routes {
		if number == CFLBKernel || m.groups[number] != nil {
			continue
		}
		codec := ipv6
		if prefix.Addr().Is4() {
			codec = ipv4
		}
		group, err := CFLBGroup(codec, table.Groups[number])
		if err != nil {
			return nil, err
		}
		m.groups[number] = group
	}
	return m, nil
}

// CFLBGroup makes of next hops the group by whose weights a codec shares.
func CFLBGroup(codec *cflb.Codec, hops []CFLBNextHop) (*cflb.Group, error) {
	weights := make([]uint32, len(hops))
	for i, hop := range hops {
		weights[i] = hop.Weight
	}
	return codec.NewGroup(weights)
}

// CFLBResult is what became of a frame.
type CFLBResult struct {
	// a next hop was chosen; else the kernel forwards the frame as it does without us
	Chosen    bool
	Index     int
	Choice    cflb.Choice
	Forwarded bool   // at XDP, to Interface; else it is handed to the kernel as it came
	Interface uint32 // index
	Frame     []byte // after
}

// Forward is what becomes of a frame at XDP.
func (m *CFLB) Forward(frame []byte) CFLBResult {
	result := m.Choose(frame)
	if !result.Chosen || frame[0]&1 != 0 {
		return CFLBResult{Frame: frame}
	}
	number, _ := m.route(destinationOf(frame))
	hop := m.Table.Groups[number][result.Index]
	if !hop.Ready || lengthOf(frame[14:]) > int(hop.MTU) {
		return CFLBResult{Frame: frame}
	}
	out := bytes.Clone(frame)
	copy(out, hop.Destination[:])
	copy(out[6:], hop.Source[:])
	if out[12] == 8 { // IPv4: the header's sum is computed anew
		out[14+8]--
		binary.BigEndian.PutUint16(out[14+10:], 0)
		binary.BigEndian.PutUint16(out[14+10:], ^sumOf(out[14:34]))
	} else {
		out[14+7]--
	}
	result.Forwarded, result.Interface, result.Frame = true, hop.Interface, out
	return result
}

// Choose is what the TC program finds for a frame: the next hop of which the kernel is told.
func (m *CFLB) Choose(frame []byte) CFLBResult {
	p, ok := readPacket(frame)
	if !ok {
		return CFLBResult{Frame: frame}
	}
	number, ok := m.route(p.Dst)
	if !ok {
		return CFLBResult{Frame: frame}
	}
	codec := m.IPv6
	if p.Dst.Is4() {
		codec = m.IPv4
	}
	index, choice := codec.NextHop(p, m.Router, m.groups[number])
	return CFLBResult{Chosen: index >= 0, Index: index, Choice: choice, Frame: frame}
}

// route returns the group of the longest prefix that holds the address. ok is false if the kernel
// has to forward.
func (m *CFLB) route(to netip.Addr) (number int, ok bool) {
	bits := -1
	for prefix, group := range m.Table.Routes {
		if prefix.Bits() > bits && prefix.Contains(to) {
			bits, number = prefix.Bits(), group
		}
	}
	return number, bits >= 0 && number != CFLBKernel
}

// readPacket reads an Ethernet frame. ok is false where the kernel has to look at the packet:
// options, a hop limit that ends here, addresses that no router forwards, a header that is wrong.
func readPacket(frame []byte) (p cflb.Packet, ok bool) {
	if len(frame) < 14 {
		return p, false
	}
	ip := frame[14:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		p, ok = readIPv4(ip)
	case 0x86dd:
		p, ok = readIPv6(ip)
	}
	return p, ok && lengthOf(ip) <= len(ip)
}

func readIPv4(ip []byte) (p cflb.Packet, ok bool) {
	if len(ip) < 20 || ip[0] != 0x45 || ip[8] <= 1 || sumOf(ip[:20]) != 0xffff ||
		lengthOf(ip) < 20 {
		return p, false
	}
	if ip[12] == 0 || ip[12] == 127 || ip[12] >= 224 {
		return p, false
	}
	p = cflb.Packet{
		Src: netip.AddrFrom4([4]byte(ip[12:])), Dst: netip.AddrFrom4([4]byte(ip[16:])),
		Protocol: ip[9], HopLimit: ip[8],
	}
	if binary.BigEndian.Uint16(ip[6:])&0x3fff == 0 {
		readPorts(&p, ip[20:])
	}
	return p, true
}

func readIPv6(ip []byte) (p cflb.Packet, ok bool) {
	if len(ip) < 40 || ip[0]>>4 != 6 || ip[7] <= 1 || ip[6] == 0 {
		return p, false
	}
	source := netip.AddrFrom16([16]byte(ip[8:]))
	if source.IsLinkLocalUnicast() || source.IsMulticast() || binary.BigEndian.Uint64(ip[8:]) == 0 {
		return p, false
	}
	p = cflb.Packet{
		Src: source, Dst: netip.AddrFrom16([16]byte(ip[24:])), Protocol: ip[6], HopLimit: ip[7],
		FlowLabel: binary.BigEndian.Uint32(ip) & 0xfffff,
	}
	readPorts(&p, ip[40:])
	return p, true
}

func readPorts(p *cflb.Packet, transport []byte) {
	if (p.Protocol == 6 || p.Protocol == 17) && len(transport) >= 4 {
		p.HasPorts = true
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(transport),
			binary.BigEndian.Uint16(transport[2:])
	}
}

// lengthOf is the packet's length by its header, which is there.
func lengthOf(ip []byte) int {
	if ip[0]>>4 == 4 {
		return int(binary.BigEndian.Uint16(ip[2:]))
	}
	return 40 + int(binary.BigEndian.Uint16(ip[4:]))
}

func destinationOf(frame []byte) netip.Addr {
	if frame[12] == 8 {
		return netip.AddrFrom4([4]byte(frame[30:]))
	}
	return netip.AddrFrom16([16]byte(frame[38:]))
}

// sumOf is the ones' complement sum over 16-bit words (RFC 1071).
func sumOf(header []byte) uint16 {
	var sum uint32
	for ; len(header) > 1; header = header[2:] {
		sum += uint32(binary.BigEndian.Uint16(header))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// CFLBKernelHashes returns for each next hop of a route, in the kernel's order, a hash of a packet
// with which the kernel takes it: the middle of its range in hash-threshold selection (RFC 2992),
// which goes by the upper 31 bits and leaves out what is down, of weight 0. Resilient groups do
// without ranges.
func CFLBKernelHashes(weights []uint32) []uint32 {
	var total, before uint64
	for _, weight := range weights {
		total += uint64(weight)
	}
	hashes := make([]uint32, len(weights))
	for i, weight := range weights {
		if weight > 0 {
			hashes[i] = uint32((2*before + uint64(weight)) << 31 / total)
			before += uint64(weight)
		}
	}
	return hashes
}
