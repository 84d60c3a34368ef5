package datapath

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// The kernel takes the next hop that the packet's source names, in the order of its own route:
// IPv4 and IPv6, all weights, routes that list their next hops and groups of next hop objects.
func TestCFLBKernelForwards(t *testing.T) {
	for _, weights := range [][]uint32{{1, 1}, {1, 1, 1}, {2, 1, 1}, {1, 5, 3, 7}, {256, 1}} {
		for _, objects := range []bool{false, true} {
			for _, is4 := range []bool{true, false} {
				w := newWorld(t)
				name := fmt.Sprintf("%v,objects=%v,ipv4=%v", weights, objects, is4)
				w.run(t, name, func(t *testing.T) { kernelForwards(t, w, weights, objects, is4) })
			}
		}
	}
}

func kernelForwards(t *testing.T, w *world, weights []uint32, objects, is4 bool) {
	for name, value := range map[string]string{
		"net.ipv4.ip_forward": "1", "net.ipv4.fib_multipath_hash_policy": "1",
		"net.ipv6.fib_multipath_hash_policy": "1", "net.ipv4.conf.all.rp_filter": "0",
		"net.ipv4.conf.near.rp_filter": "0",
	} {
		must(t, linux.WriteSysctl(name, value))
	}
	must(t, linuxtest.IP(legs(weights, objects, is4)))
	codec, err := cflb.New(cflb.Defaults(cflb.BothPorts, len(weights), [cflb.KeyLength]byte{3}))
	must(t, err)
	r, err := OpenCFLB(w.dir, CFLBConfig{
		IPv4: codec, IPv6: codec, Router: 9, Kernel: true,
		Interfaces: []CFLBInterface{{Name: "near"}},
	})
	must(t, err)
	defer r.Close()
	hops := make([]model.CFLBNextHop, len(weights))
	for i, hash := range model.CFLBKernelHashes(weights) {
		hops[i] = model.CFLBNextHop{Weight: weights[i], KernelHash: hash, Interface: 1}
	}
	p := cflb.Packet{
		Src: netip.MustParseAddr("198.51.100.7"), Dst: netip.MustParseAddr("203.0.113.9"),
		Protocol: unix.IPPROTO_UDP, HopLimit: 64,
	}
	if !is4 {
		p.Src, p.Dst = netip.MustParseAddr("2001:db8:1::7"), netip.MustParseAddr("2001:db8:2::9")
	}
	prefix := netip.PrefixFrom(p.Dst, p.Dst.BitLen()/2).Masked()
	must(t, r.SetTable(model.CFLBTable{
		Groups: [][]model.CFLBNextHop{hops}, Routes: map[netip.Prefix]int{prefix: 0},
	}))
	_, err = r.Commit()
	must(t, err)
	near, tap := openWire(t), openTap(t, len(weights))
	const each = 64
	for i := range each * len(weights) {
		path := []cflb.Hop{{HopLimit: 64, Index: i % len(weights)}}
		packets, err := codec.Selectors(p, path, uint64(i)*0x9e3779b97f4a7c15)
		must(t, err)
		for steered := range packets {
			near.send(t, udpFrame(steered, uint32(i)))
			break
		}
	}
	for range each * len(weights) {
		if leg, number := tap.next(t, is4); int(number)%len(weights) != leg {
			t.Fatalf("packet %d leaves by leg %d of %d", number, leg, len(weights))
		}
	}
	choices, err := r.Choices()
	must(t, err)
	if choices[cflb.Controlled] != uint64(each*len(weights)) {
		t.Errorf("choices %v, want %d controlled", choices, each*len(weights))
	}
}

// legs makes an interface for each next hop, with a neighbour on it, and the route.
func legs(weights []uint32, objects, is4 bool) string {
	var commands, route, group strings.Builder
	family, to, dad := "-4", "203.0.113.0/24", ""
	if !is4 {
		family, to, dad = "-6", "2001:db8:2::/48", " nodad"
	}
	for i, weight := range weights {
		own, via := fmt.Sprintf("10.9.%d.1/24", i), fmt.Sprintf("10.9.%d.2", i)
		if !is4 {
			own, via = fmt.Sprintf("fd00:9:%d::1/64", i), fmt.Sprintf("fd00:9:%d::2", i)
		}
		fmt.Fprintf(&commands, `link add leg%[1]d type veth peer name leg%[1]dpeer
link set leg%[1]dpeer up
link set leg%[1]d up
addr add %[2]s dev leg%[1]d%[6]s
neigh add %[3]s lladdr 02:00:00:00:09:%02[1]x dev leg%[1]d nud permanent
%[4]s nexthop add id %[5]d via %[3]s dev leg%[1]d
`, i, own, via, family, i+1, dad)
		fmt.Fprintf(&route, " nexthop via %s dev leg%d weight %d", via, i, weight)
		fmt.Fprintf(&group, "/%d,%d", i+1, weight)
	}
	if objects {
		fmt.Fprintf(&commands, "nexthop add id 100 group %s\n%s route add %s nhid 100\n",
			strings.TrimPrefix(group.String(), "/"), family, to)
	} else {
		fmt.Fprintf(&commands, "%s route add %s%s\n", family, to, route.String())
	}
	return commands.String()
}

// udpFrame is a frame for near with a UDP packet without a checksum over its 4 octets, a number.
func udpFrame(p cflb.Packet, number uint32) []byte {
	frame := append(append(net.HardwareAddr{}, nearMAC...), routerMAC...)
	src, dst := p.Src.AsSlice(), p.Dst.AsSlice()
	if p.Src.Is4() {
		ip := []byte{0x45, 0, 0, 32, 0, 0, 0, 0, p.HopLimit, p.Protocol, 0, 0}
		ip = append(append(ip, src...), dst...)
		binary.BigEndian.PutUint16(ip[10:], headerSum(ip))
		frame = append(append(frame, 8, 0), ip...)
	} else {
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, p.Protocol, p.HopLimit)
		frame = append(append(frame, src...), dst...)
	}
	frame = binary.BigEndian.AppendUint16(frame, p.SrcPort)
	frame = binary.BigEndian.AppendUint16(frame, p.DstPort)
	return binary.BigEndian.AppendUint32(append(frame, 0, 12, 0, 0), number)
}

// A tap hears what leaves by the legs.
type tap struct {
	wire
	legs map[int]int // by the index of the peer
}

func openTap(t *testing.T, legs int) tap {
	t.Helper()
	const allProtocols = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, allProtocols)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Sec: int64(wirePatience / time.Second)}))
	must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)) // for all at once
	heard := tap{wire{fd}, map[int]int{}}
	for leg := range legs {
		peer, err := net.InterfaceByName(fmt.Sprintf("leg%dpeer", leg))
		must(t, err)
		heard.legs[peer.Index] = leg
	}
	return heard
}

// next waits for a UDP packet at the end of a leg, and returns the number that it carries.
func (w tap) next(t *testing.T, is4 bool) (leg int, number uint32) {
	t.Helper()
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, from, err := linuxtest.Receive(w.fd, buffer)
		must(t, err)
		frame := buffer[:n]
		leg, ok := w.legs[from.(*unix.SockaddrLinklayer).Ifindex]
		switch {
		case !ok:
		case is4 && n >= 46 && frame[12] == 8 && frame[13] == 0 && frame[23] == unix.IPPROTO_UDP:
			return leg, binary.BigEndian.Uint32(frame[42:])
		case !is4 && n >= 66 && frame[12] == 0x86 && frame[20] == unix.IPPROTO_UDP:
			return leg, binary.BigEndian.Uint32(frame[62:])
		}
	}
	t.Fatalf("no packet left by a leg within %v", wirePatience)
	return 0, 0
}
