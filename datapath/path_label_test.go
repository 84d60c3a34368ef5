package datapath

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

var labelGateway = net.HardwareAddr{2, 0, 0, 0, 0, 0x77}

// newLabeledHost is newSteeredHost whose IPv6 packets carry flow labels. Arrivals are the frames
// that leave the host.
func newLabeledHost(t testing.TB, fields cflb.Fields, rules []PathRule,
	use func(h *steeredHost, arrivals func(testing.TB) []byte)) {
	t.Helper()
	newSteeredHost(t, fields, func(h *steeredHost) {
		h.source.Close()
		h.config.IPv4, h.config.Source6, h.config.Interfaces = nil, netip.Addr{}, []string{"d0"}
		if rules != nil {
			h.config.Rules = rules
		}
		must(t, linux.SetOffload("d0", linux.TxChecksum, false))
		must(t, linuxtest.IP("-6 neigh add fd00:7::77 lladdr "+labelGateway.String()+
			" dev d0 nud permanent\n-6 route replace default via fd00:7::77 dev d0"))
		var err error
		h.source, err = SteerCgroup(linuxtest.OwnCgroup(t), h.config)
		must(t, err)
		use(h, labelTap(t))
	})
}

// labelTap opens what sees the frames to the gateway.
func labelTap(t testing.TB) func(testing.TB) []byte {
	t.Helper()
	far, err := net.InterfaceByName("d1")
	must(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: far.Index,
		Protocol: binary.BigEndian.Uint16([]byte{0xdd, 0x86})}))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Sec: int64(wirePatience / time.Second)}))
	return func(t testing.TB) []byte {
		frame := make([]byte, 4096)
		for {
			n, _, err := linuxtest.Receive(fd, frame)
			must(t, err)
			if n > 14 && bytes.Equal(frame[:6], labelGateway) {
				return frame[:n]
			}
		}
	}
}

// labelOf is the flow label of a frame.
func labelOf(frame []byte) uint32 { return binary.BigEndian.Uint32(frame[14:]) & 0xfffff }

// checkLabeled wants a frame of a steered socket to be the packet, with a label by which routers
// take the path.
func (h *steeredHost) checkLabeled(t *testing.T, frame []byte, p packettest.Packet) {
	t.Helper()
	p.FlowLabel = labelOf(frame)
	if want := p.Bytes(t); !bytes.Equal(frame[14:], want) {
		t.Errorf("left as\n%x, want\n%x", frame[14:], want)
	}
	for _, hop := range h.config.Rules[0].Path {
		digit, choice, _ := h.config.IPv6.Digit(cflb.Packet{Src: p.Src, Dst: p.Dst,
			Protocol: uint8(p.Protocol), HasPorts: true, SrcPort: p.SrcPort, DstPort: p.DstPort,
			FlowLabel: p.FlowLabel, HopLimit: hop.HopLimit}, 7)
		if choice != cflb.Controlled || digit != hop.Index {
			t.Errorf("label %05x: the router at %d takes %d, %s; want %d", p.FlowLabel,
				hop.HopLimit, digit, choice, hop.Index)
		}
	}
}

// Datagrams take the path by their flow labels: of sockets that are connected or not, bound or not,
// to several destinations in turn. Nothing but the label of a packet changes, and a flow keeps it.
func TestPathLabels(t *testing.T) {
	for _, fields := range []cflb.Fields{cflb.FlowLabel, cflb.FlowLabelSourcePort,
		cflb.FlowLabelBothPorts} {
		t.Run(fields.String(), func(t *testing.T) {
			newLabeledHost(t, fields, nil, func(h *steeredHost, arrivals func(testing.TB) []byte) {
				sendLabeled(t, h, arrivals)
			})
		})
	}
}

func sendLabeled(t *testing.T, h *steeredHost, arrivals func(testing.TB) []byte) {
	t.Helper()
	labels, sent := map[uint32]bool{}, uint64(0)
	for i := range 12 {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		port := uint16(20000 + i)
		must(t, unix.Bind(fd, &unix.SockaddrInet6{Port: int(port)}))
		connected := i%2 == 0
		first := map[byte]uint32{}
		for round := range 6 {
			last := byte(round % 3)
			to := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: 1 + last})
			address := &unix.SockaddrInet6{Port: 443, Addr: to.As16()}
			payload := []byte{byte(i), byte(round), 3}
			if connected {
				if round < 3 { // to another destination each time
					must(t, unix.Connect(fd, address))
					sent++
				} else {
					last, to = 2, netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: 3})
				}
				_, err = unix.Write(fd, payload)
			} else {
				err = unix.Sendto(fd, payload, 0, address)
				sent++
			}
			must(t, err)
			frame := arrivals(t)
			h.checkLabeled(t, frame, packettest.Packet{Src: netip.MustParseAddr("fd00:7::1"),
				Dst: to, SrcPort: port, DstPort: 443, HopLimit: 64,
				Protocol: layers.IPProtocolUDP, Payload: payload})
			label := labelOf(frame)
			if before, ok := first[last]; ok && connected && before != label {
				t.Errorf("a flow's label changes from %05x to %05x", before, label)
			}
			first[last] = label
			labels[label] = true
		}
	}
	if len(labels) < 20 {
		t.Errorf("flows to one destination share %d labels", len(labels))
	}
	got, err := h.source.Counters()
	must(t, err)
	if got != (PathSourceCounters{Steered: sent}) {
		t.Errorf("counted %+v, want %d steered", got, sent)
	}
}

// While packets of TCP are not acknowledged the kernel chooses other labels, to find another path
// (net.core.txrehash). A steered socket keeps its path.
func TestPathLabelOutlivesRehash(t *testing.T) {
	steered, free := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1::1")
	rules := []PathRule{{Destination: netip.PrefixFrom(steered, 64), Path: steeredPath}}
	check := func(h *steeredHost, arrivals func(testing.TB) []byte) {
		for _, to := range []netip.Addr{steered, free} {
			_, end := connectSteered(t, unix.SOCK_STREAM, netip.AddrPortFrom(to, 443))
			defer end()
		}
		const tries = 3 // at opening a connection
		labels := map[netip.Addr][]uint32{}
		for len(labels[steered]) < tries || len(labels[free]) < tries {
			frame := arrivals(t)
			to := netip.AddrFrom16([16]byte(frame[38:54]))
			labels[to] = append(labels[to], labelOf(frame))
		}
		for _, label := range labels[steered] {
			if label != labels[steered][0] || label == 0 {
				t.Errorf("the steered socket's labels are %05x", labels[steered])
			}
		}
		if labels[free][0] == labels[free][1] && labels[free][1] == labels[free][2] {
			t.Errorf("a socket that is left alone keeps its label %05x: the kernel does not "+
				"choose another, and the test shows nothing", labels[free])
		}
	}
	newLabeledHost(t, cflb.FlowLabel, rules, check)
}

var _ = fuzzes(FuzzPathLabel, "path_label", "path_sendmsg6")

// FuzzPathLabel sends datagrams to whatever address and port, by a socket that is not connected:
// each leaves as it is but for its label, by which routers take the path.
func FuzzPathLabel(f *testing.F) {
	for _, to := range []string{"2001:db8::1", "fd01:db8::1"} {
		f.Add(netip.MustParseAddr(to).AsSlice(), uint16(53), []byte("payload"))
	}
	newLabeledHost(f, cflb.FlowLabelBothPorts, nil, func(h *steeredHost,
		arrivals func(testing.TB) []byte) {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		must(f, err)
		defer unix.Close(fd)
		must(f, unix.Bind(fd, &unix.SockaddrInet6{Port: 20000}))
		f.Fuzz(func(t *testing.T, to []byte, port uint16, payload []byte) {
			if len(to) != 16 || port == 0 || len(payload) > 1200 || to[0] < 0x20 ||
				to[0] >= 0xfe || to[0] == 0xfd && to[1] == 0 {
				return // no unicast address, one of a link, or the host's own network
			}
			must(t, unix.Sendto(fd, payload, 0, &unix.SockaddrInet6{Port: int(port),
				Addr: [16]byte(to)}))
			h.checkLabeled(t, arrivals(t), packettest.Packet{Dst: netip.AddrFrom16([16]byte(to)),
				Src: netip.MustParseAddr("fd00:7::1"), SrcPort: 20000, DstPort: port, HopLimit: 64,
				Protocol: layers.IPProtocolUDP, Payload: payload})
		})
	})
}
