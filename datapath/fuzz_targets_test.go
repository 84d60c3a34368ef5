package datapath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
)

// targetPrograms loads programs with target ports of UDP and TCP at both families.
func targetPrograms(t testing.TB) map[string]*ebpf.Program {
	c := &collection{maps: map[string]*ebpf.Map{}}
	spec, err := loadTargetPort()
	must(t, err)
	programs, err := c.load(spec)
	must(t, err)
	t.Cleanup(c.close)
	wanted, sources := targetsOf(append(target(unix.IPPROTO_UDP, 53, 5353),
		target(unix.IPPROTO_TCP, 80, 8080)...))
	for key, value := range wanted {
		must(t, c.maps["targets"].Put(key, value))
	}
	for key, value := range sources {
		must(t, c.maps["target_sources"].Put(key, value))
	}
	return programs
}

var _ = fuzzes(FuzzTargetPort, "target_arrive", "target_leave")

// FuzzTargetPort gives the programs any frame: if one changes, then in a port that is one of those
// to replace, and in two bytes of checksum that change by as much.
func FuzzTargetPort(f *testing.F) {
	newWorld(f)
	programs := targetPrograms(f)
	wire := packettest.FromClient()
	for _, h := range targetHosts {
		base := packettest.Web6("S")
		if h.vip.Is4() {
			base = packettest.Web4("S")
		}
		udp := base.To(h.vip, 53).Of(layers.IPProtocolUDP, 1, 2, 3)
		for _, p := range []packettest.Packet{base.To(h.vip, 80), udp,
			udp.To(h.vip, 5353).Reply("")} {
			f.Add(wire.Frame(f, p.Bytes(f)))
			f.Add(packettest.FromClient(7).Frame(f, p.Bytes(f)))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 14 || len(frame) > 4000 {
			return
		}
		for name, ports := range map[string][2]uint16{"target_arrive": {53, 5353},
			"target_leave": {5353, 53}} {
			_, after, err := programs[name].Test(frame)
			if errors.Is(err, unix.EINVAL) {
				return // the kernel tests no program with less than Ethernet and IP headers
			}
			must(t, err)
			if len(after) != len(frame) {
				t.Fatalf("%s: %d bytes of %d", name, len(after), len(frame))
			}
			if bytes.Equal(after, frame) {
				continue
			}
			if why := replacedWrongly(frame, after, ports); why != "" {
				t.Fatalf("%s: %s\n%x\n%x", name, why, frame, after)
			}
		}
	})
}

// replacedWrongly says what else changed than a port from one number to another and a checksum.
func replacedWrongly(before, after []byte, ports [2]uint16) string {
	at := 0
	for before[at] == after[at] {
		at++
	}
	for _, at := range []int{at, at - 1} { // numbers may have the same first byte
		if at < 0 || at+8 > len(before) || binary.BigEndian.Uint16(before[at:]) != ports[0] ||
			binary.BigEndian.Uint16(after[at:]) != ports[1] {
			continue
		}
		for _, sum := range []int{at + 4, at + 6} { // from the destination's port, and the source's
			same := bytes.Clone(after)
			copy(same[at:], before[at:at+2])
			copy(same[sum:], before[sum:sum+2])
			old, now := binary.BigEndian.Uint16(before[sum:]), binary.BigEndian.Uint16(after[sum:])
			if bytes.Equal(same, before) &&
				(old == 0 && now == 0 || folded(old, ports[0]) == folded(now, ports[1])) {
				return ""
			}
		}
	}
	return "more than a port and its checksum changed"
}

// folded adds two numbers in one's complement, in which 0xffff is 0.
func folded(a, b uint16) uint32 { return (uint32(a) + uint32(b)) % 0xffff }

var _ = fuzzes(FuzzTargetLookup, "target_lookup")

// FuzzTargetLookup gives the look-up of listeners any addresses and ports: it lets all pass, and
// finds nothing where nobody listens.
func FuzzTargetLookup(f *testing.F) {
	newWorld(f)
	program := targetPrograms(f)["target_lookup"]
	f.Add(true, uint8(unix.IPPROTO_TCP), make([]byte, 16), uint16(80))
	for _, h := range targetHosts {
		f.Add(h.vip.Is4(), uint8(unix.IPPROTO_TCP), h.vip.AsSlice(), uint16(80))
		f.Add(h.vip.Is4(), uint8(unix.IPPROTO_UDP), h.vip.AsSlice(), uint16(53))
	}
	f.Fuzz(func(t *testing.T, ipv4 bool, protocol uint8, address []byte, port uint16) {
		if protocol != unix.IPPROTO_UDP {
			protocol = unix.IPPROTO_TCP
		}
		ask := lookupContext{Family: unix.AF_INET6, Protocol: uint32(protocol),
			RemotePort: bigEndian(4000), LocalPort: uint32(port)}
		if ipv4 {
			ask.Family = unix.AF_INET
			copy(ask.LocalIPv4[:], address)
		} else {
			copy(ask.LocalIPv6[:], address)
		}
		verdict, err := program.Run(&ebpf.RunOptions{Context: ask, ContextOut: &ask})
		if err != nil || verdict != 1 || ask.Cookie != 0 {
			t.Fatalf("%+v: verdict %d, %v", ask, verdict, err)
		}
	})
}

// lookupContext is struct bpf_sk_lookup of linux/bpf.h.
type lookupContext struct {
	Cookie     uint64
	Family     uint32
	Protocol   uint32
	RemoteIPv4 [4]byte
	RemoteIPv6 [16]byte
	RemotePort [2]byte
	_          [2]byte
	LocalIPv4  [4]byte
	LocalIPv6  [16]byte
	LocalPort  uint32
	Ingress    uint32
	_          [4]byte
}
