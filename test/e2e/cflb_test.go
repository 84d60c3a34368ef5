package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// treePacket is the length of a packet of the tests. They are that long so that octets count up to
// 100 of them: what else is sent, as multicast listener reports, is far shorter, and so is the
// Ethernet header, which counters have or not.
const (
	treePacket   = 1500
	treePayload4 = treePacket - 20 - 8 // of UDP over IPv4
	tapBuffer    = 64 << 20            // holds all packets of a test
)

func hostToNetwork16(v uint16) uint16 { return v>>8 | v<<8 }

// tap opens sockets by which the hosts send and receive.
func (f *fatTree) tap() error {
	for host := range f.hosts {
		link, err := net.InterfaceByName(fmt.Sprintf("h%d", host))
		if err != nil {
			return err
		}
		f.hosts[host] = link.Index
	}
	for of6, protocol := range map[bool]uint16{false: unix.ETH_P_IP, true: unix.ETH_P_IPV6} {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC,
			int(hostToNetwork16(protocol)))
		if err != nil {
			return err
		}
		f.t.Cleanup(func() { unix.Close(fd) })
		f.taps[of6] = fd
		if err := errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
				&unix.Timeval{Sec: 20})); err != nil {
			return err
		}
	}
	return nil
}

// A treePath is a flow with the way that its packet is to take.
type treePath struct {
	src, dst, aggregation, core int
}

// treePaths lists every path between every two hosts.
func treePaths() (paths []treePath) {
	for src := range 16 {
		for dst := range 16 {
			for i := range 4 {
				sameEdge, samePod := src/2 == dst/2, src/4 == dst/4
				if src != dst && (i == 0 || i < 2 && !sameEdge || !samePod) {
					paths = append(paths, treePath{src, dst, i % 2, i / 2})
				}
			}
		}
	}
	return paths
}

// arrivals lists where the packet of a path has to arrive, and how many choices that takes.
func (p treePath) arrivals() (at []string, choices int) {
	on := func(router string, kind string, number int) {
		at = append(at, fmt.Sprintf("%s %s%d", router, kind, number))
	}
	on(edgeName(p.src/2), "h", p.src)
	defer func() { on("hosts", "h", p.dst) }()
	if p.src/2 == p.dst/2 {
		return at, 0
	}
	srcPod, dstPod := p.src/4, p.dst/4
	on(aggregationName(srcPod, p.aggregation), "d", edgeLink(p.src/2, p.aggregation))
	choices = 1
	if srcPod != dstPod {
		on(coreName(p.aggregation, p.core), "d", coreLink(srcPod, p.aggregation, p.core))
		on(aggregationName(dstPod, p.aggregation), "u", coreLink(dstPod, p.aggregation, p.core))
		choices = 2
	}
	on(edgeName(p.dst/2), "u", edgeLink(p.dst/2, p.aggregation))
	return at, choices
}

// steered is the packet of a path, as its source encodes it.
func (f *fatTree) steered(p treePath, of6 bool, number int) cflb.Packet {
	f.t.Helper()
	packet := cflb.Packet{Src: hostAddress(p.src), Dst: hostAddress(p.dst), HopLimit: 64,
		Protocol: unix.IPPROTO_UDP, HasPorts: true, SrcPort: 4788, DstPort: 4789}
	if of6 {
		packet.Src, packet.Dst = hostAddress6(p.src), hostAddress6(p.dst)
	}
	packets, err := f.codecs[of6].Selectors(packet,
		[]cflb.Hop{{HopLimit: 64, Index: p.aggregation}, {HopLimit: 63, Index: p.core}},
		uint64(number)*0x9e3779b97f4a7c15)
	must(f.t, err)
	for one := range packets {
		return one
	}
	f.t.Fatalf("%+v has no selector", p)
	return packet
}

// send sends a packet from its host.
func (f *fatTree) send(p cflb.Packet, from int) {
	f.t.Helper()
	ethertype := []byte{8, 0}
	if p.Src.Is6() {
		ethertype = []byte{0x86, 0xdd}
	}
	frame := slices.Concat(macOf(3, from), macOf(4, from), ethertype, udpPacket(p))
	must(f.t, unix.Sendto(f.taps[p.Src.Is6()], frame, 0,
		&unix.SockaddrLinklayer{Ifindex: f.hosts[from]}))
}

// udpPacket is an IP packet of UDP, which fills a frame, without a right UDP checksum.
func udpPacket(p cflb.Packet) []byte {
	ip := make([]byte, treePacket)
	udp := ip[20:]
	if p.Src.Is6() {
		udp = ip[40:]
		binary.BigEndian.PutUint32(ip, 6<<28|p.FlowLabel)
		binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
		ip[6], ip[7] = p.Protocol, p.HopLimit
		copy(ip[8:], p.Src.AsSlice())
		copy(ip[24:], p.Dst.AsSlice())
	} else {
		ip[0], ip[8], ip[9] = 0x45, p.HopLimit, p.Protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		copy(ip[12:], p.Src.AsSlice())
		copy(ip[16:], p.Dst.AsSlice())
		var sum uint32
		for i := 0; i < 20; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(ip[i:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	}
	binary.BigEndian.PutUint16(udp, p.SrcPort)
	binary.BigEndian.PutUint16(udp[2:], p.DstPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	return ip
}

// receive waits until as many packets have come to the hosts.
func (f *fatTree) receive(of6 bool, wanted int) {
	f.t.Helper()
	buffer := make([]byte, 2048)
	for read := 0; read < wanted; {
		n, _, err := linuxtest.Receive(f.taps[of6], buffer)
		if errors.Is(err, unix.EAGAIN) {
			f.t.Fatalf("%d of %d packets arrived at hosts", read, wanted)
		}
		must(f.t, err)
		if n == treePacket+14 {
			read++
		}
	}
}

// arrivedSince waits until the counters of all interfaces together have risen by as many frames,
// and returns by how many each has.
func (f *fatTree) arrivedSince(before map[string]int, frames int) map[string]int {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		arrived, total := map[string]int{}, 0
		for at, octets := range f.octets() {
			if n := (octets - before[at]) / treePacket; n > 0 {
				arrived[at] = n
				total += n
			}
		}
		if total >= frames || time.Now().After(deadline) {
			return arrived
		}
	}
}

// checkBatch sends what the function sends, packets of these paths, all of which make the same
// choices: then a router that took another next hop for one of them shows at a counter that has to
// stay 0.
func (f *fatTree) checkBatch(paths []treePath, of6 bool, send func()) {
	f.t.Helper()
	before, want, frames := f.octets(), map[string]int{}, 0
	for _, p := range paths {
		at, _ := p.arrivals()
		for _, one := range at {
			want[one]++
		}
		frames += len(at)
	}
	send()
	f.receive(of6, len(paths))
	got := f.arrivedSince(before, frames)
	for _, at := range slices.Sorted(maps.Keys(f.octets())) {
		if got[at] != want[at] {
			f.t.Errorf("%d frames came in at %s, want %d", got[at], at, want[at])
		}
	}
}

// treeNetworks are the ways in which the fat tree is run.
var treeNetworks = []struct {
	name       string
	ipv4, ipv6 cflb.Fields
	xdp        bool
}{
	{"kernel, source port and flow label", cflb.SourcePort, cflb.FlowLabel, false},
	{"kernel, both ports and source port", cflb.BothPorts, cflb.SourcePort, false},
	{"XDP, source port and flow label", cflb.SourcePort, cflb.FlowLabel, true},
	{"XDP, both ports and source port", cflb.BothPorts, cflb.SourcePort, true},
}

// Every path between every two hosts of a fat tree is taken exactly as asked, and no other, which
// the counters of all links show; what controls nothing is spread as by a hash.
func TestCFLBEveryPathOfAFatTree(t *testing.T) {
	t.Parallel()
	for _, n := range treeNetworks {
		t.Run(n.name, func(t *testing.T) {
			f := newFatTree(t, n.ipv4, n.ipv6, n.xdp)
			paths := treePaths()
			if want := 16*12*4 + 16*2*2 + 16; len(paths) != want {
				t.Fatalf("%d paths, want %d", len(paths), want)
			}
			choices := 0
			for _, p := range paths {
				_, n := p.arrivals()
				choices += 2 * n
			}
			for _, of6 := range []bool{false, true} {
				for i := range 4 {
					batch := slices.DeleteFunc(slices.Clone(paths), func(p treePath) bool {
						return p.aggregation != i%2 || p.core != i/2
					})
					f.checkBatch(batch, of6, func() {
						for number, p := range batch {
							f.send(f.steered(p, of6, number), p.src)
						}
					})
				}
			}
			f.checkChoices(choices)
			f.checkSpread(false)
			f.checkSpread(true)
		})
	}
}

// checkChoices wants all choices to have been the sources'.
func (f *fatTree) checkChoices(want int) {
	f.t.Helper()
	total := map[cflb.Choice]uint64{}
	for _, r := range f.cflb {
		choices, err := r.Choices()
		must(f.t, err)
		for choice, n := range choices {
			total[choice] += n
		}
	}
	if total[cflb.Controlled] != uint64(want) || total[cflb.Beyond]+total[cflb.OutOfRange]+
		total[cflb.Unreadable] > 0 {
		f.t.Errorf("choices %v, want %d controlled and no other", total, want)
	}
}

// Bounds of chi-square at a probability of 0.001. The flows are the same in every run.
const (
	chiSquare3 = 16.27 // 3 degrees of freedom: four paths
	chiSquare8 = 26.12 // 8 degrees of freedom: two links at each of eight routers
)

// checkSpread sends flows of random ports that control nothing between pods: all packets of a flow
// take one path, and flows are spread over links and paths as by a hash.
func (f *fatTree) checkSpread(of6 bool) {
	f.t.Helper()
	var counts [2]map[string]int
	for round := range counts {
		random, before, flows := rand.New(rand.NewPCG(1, 2)), f.octets(), 0
		for src := range 16 {
			for dst := range 16 {
				for range 4 {
					if src/4 == dst/4 {
						continue
					}
					p := cflb.Packet{Src: hostAddress(src), Dst: hostAddress(dst), HopLimit: 64,
						Protocol: unix.IPPROTO_UDP, SrcPort: uint16(1024 + random.IntN(64000)),
						DstPort: uint16(1024 + random.IntN(64000))}
					if of6 {
						p.Src, p.Dst = hostAddress6(src), hostAddress6(dst)
					}
					f.send(p, src)
					flows++
				}
			}
		}
		f.receive(of6, flows)
		counts[round] = f.arrivedSince(before, flows*6)
	}
	if !maps.Equal(counts[0], counts[1]) {
		f.t.Errorf("the same flows take other paths: %v, then %v", counts[0], counts[1])
	}
	var edges, aggregations float64
	paths := make([]int, 4)
	for i := range 8 {
		pod, number, edge, core := i/2, i%2, [2]int{}, [2]int{}
		for up := range 2 {
			edge[up] = counts[0][fmt.Sprintf("%s d%d", aggregationName(pod, up), edgeLink(i, up))]
			core[up] = counts[0][fmt.Sprintf("%s d%d", coreName(number, up),
				coreLink(pod, number, up))]
			paths[number*2+up] += core[up]
		}
		edges += chiSquare(edge[:])
		aggregations += chiSquare(core[:])
	}
	if all := chiSquare(paths); edges > chiSquare8 || aggregations > chiSquare8 ||
		all > chiSquare3 {
		f.t.Errorf("IPv6 %t: chi-square %.1f at edge routers, %.1f at aggregation routers, at "+
			"most %.1f; %.1f over paths (%v), at most %.1f", of6, edges, aggregations, chiSquare8,
			all, paths, chiSquare3)
	}
}

// chiSquare says how far counts are from equal ones.
func chiSquare(counts []int) (sum float64) {
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	return sum
}
