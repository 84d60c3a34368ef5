package e2e_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/tsharktest"
	"sextant/examples"
)

// arrivals are the frames that a device receives, as they come. A router's End changes destinations
// in place: a socket without a ring, or for IPv6 alone, which has its turn behind the kernel's own
// IPv6, would read what End has left.
type arrivals struct {
	socket int
	ring   []byte
	frames [][]byte
	times  []time.Time // when they came
	next   int         // slot of the ring
}

const (
	ringSlots  = 1024
	slotBytes  = 2048
	slotHeader = 32 // struct tpacket_hdr, aligned, behind which struct sockaddr_ll stands
)

// arriving takes the frames that a node's device receives, until the end of the test.
func (a *agents) arriving(node, device string) *arrivals {
	a.t.Helper()
	came := &arrivals{}
	inside(a.t, a.lab, node, func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if came.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err != nil {
			return err
		}
		err = unix.SetsockoptTpacketReq(came.socket, unix.SOL_PACKET, unix.PACKET_RX_RING,
			&unix.TpacketReq{Block_size: ringSlots * slotBytes, Block_nr: 1,
				Frame_size: slotBytes, Frame_nr: ringSlots})
		if err == nil {
			came.ring, err = unix.Mmap(came.socket, 0, ringSlots*slotBytes,
				unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		return errors.Join(err, unix.Bind(came.socket,
			&unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL << 8, Ifindex: d.Index}))
	})
	a.t.Cleanup(func() {
		unix.Close(came.socket)
		must(a.t, unix.Munmap(came.ring))
	})
	return came
}

// all are those that have come so far.
func (a *arrivals) all() [][]byte {
	for {
		slot := a.ring[a.next*slotBytes : (a.next+1)*slotBytes]
		status := (*uint64)(unsafe.Pointer(&slot[0]))
		if atomic.LoadUint64(status)&unix.TP_STATUS_USER == 0 {
			return a.frames
		}
		length, at := binary.NativeEndian.Uint32(slot[12:]), binary.NativeEndian.Uint16(slot[16:])
		if slot[slotHeader+10] == unix.PACKET_HOST {
			a.frames = append(a.frames, slices.Clone(slot[at:uint32(at)+length]))
			a.times = append(a.times, time.Unix(int64(binary.NativeEndian.Uint32(slot[20:])),
				int64(binary.NativeEndian.Uint32(slot[24:]))*1000))
		}
		atomic.StoreUint64(status, unix.TP_STATUS_KERNEL)
		a.next = (a.next + 1) % ringSlots
	}
}

// dissection is what tshark reads of an encapsulated TCP segment.
type dissection struct {
	outer   string     // source, traffic class, flow label and next header
	to      netip.Addr // of the outer header
	inner   string     // addresses and ports
	opening bool       // SYN
	data    bool
}

// dissect has tshark read frames; those that are no TCP segments behind an outer header are left
// out.
func dissect(t *testing.T, frames [][]byte) (list []dissection) {
	t.Helper()
	if len(frames) == 0 {
		return nil
	}
	arguments := []string{"-Y", "tcp && ipv6.nxt == 41", "-T", "fields", "-E", "separator=|",
		"-E", "aggregator=,"}
	for _, field := range []string{"ipv6.src", "ipv6.dst", "ipv6.tclass", "ipv6.flow", "ipv6.nxt",
		"tcp.srcport", "tcp.dstport", "tcp.flags.syn", "tcp.len"} {
		arguments = append(arguments, "-e", field)
	}
	for line := range strings.Lines(tsharktest.Read(t, frames, arguments...)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		of := func(field, header int) string { return strings.Split(f[field], ",")[header] }
		d := dissection{
			outer: fmt.Sprintf("from %s, class %s, flow %s, next %s", of(0, 0), of(2, 0), of(3, 0),
				of(4, 0)),
			inner: fmt.Sprintf("%s %s to %s %s", of(0, 1), f[5], of(1, 1), f[6]),
			// versions of tshark write a set flag in two ways
			opening: f[7] == "1" || f[7] == "True", data: f[8] != "0",
		}
		var err error
		d.to, err = netip.ParseAddr(of(1, 0))
		must(t, err)
		list = append(list, d)
	}
	return list
}

// addressOf is the address of the SIDs that explain names: a mark stands last.
func addressOf(t *testing.T, header []api.HeaderSID) netip.Addr {
	t.Helper()
	b := [16]byte{0xfc, 0xbb, 0xbb}
	at := 4
	for _, h := range header {
		id, err := hex.DecodeString(h.Bytes)
		must(t, err)
		if h.Role == "mark" {
			copy(b[14:], id)
			continue
		}
		at += copy(b[at:], id)
	}
	return netip.AddrFrom16(b)
}

// edgeTap is a device that receives what an edge sends.
type edgeTap struct{ edge, node, device string }

// On the wire, the headers of the experiments are those that explain names, as tshark reads them.
func TestTogetherHeaders(t *testing.T) {
	for _, x := range []struct {
		experiment string
		lab        []byte
		service    string
		servers    int
		taps       []edgeTap
		copied     bool
	}{
		{"together-a-lab", examples.Together, "[2001:db8:80::80]:80", 8,
			[]edgeTap{{"edge", "left", "edge"}, {"edge", "right", "edge"}}, false},
		{"together-b", examples.Sites, "[2001:db8:80::80]:7", 8,
			[]edgeTap{{"edge1", "in1", "edge"}, {"edge2", "in2", "edge"}}, false},
		{"together-c", examples.Copies, "[2001:db8:80::80]:80", 2,
			[]edgeTap{{"edge", "left", "edge"}, {"edge", "right", "edge"}}, true},
	} {
		t.Run(x.experiment, func(t *testing.T) {
			needsRoot(t)
			_, body, _ := strings.Cut(string(x.lab), "\nname: ")
			_, body, _ = strings.Cut(body, "\n")
			// Each packet is to arrive, and once on each path, and at the test's own servers.
			w := upText(t, x.experiment+".yaml", "name: NAME\n"+strings.NewReplacer("loss: 1%",
				"loss: 0%", "[2001:db8:80::80]:80", "[2001:db8:80::80]:81").Replace(body))
			for i := range x.servers {
				serveWords(t, w.lab, server(i+1), x.service, nil)
			}
			w.ready()
			came := map[edgeTap]*arrivals{}
			for _, tap := range x.taps {
				came[tap] = w.arriving(tap.node, tap.device)
			}
			const flows = 10
			for i := range flows {
				w.talkFrom("client", talker, talkerPort+i, x.service)
			}
			w.agree(x.taps, came, x.service, flows, x.copied)
		})
	}
}

// The client's address, and its port of the first flow, which the kernel gives to no other socket.
const (
	talker     = "2001:db8:c::1"
	talkerPort = 20000
)

// talkFrom opens a connection from an address and port of a node and gets an octet back.
func (a *agents) talkFrom(node, address string, port int, service string) {
	a.t.Helper()
	inside(a.t, a.lab, node, func() error {
		from := &net.TCPAddr{IP: net.ParseIP(address), Port: port}
		conn, err := (&net.Dialer{Timeout: patience, LocalAddr: from}).Dial("tcp", service)
		if err == nil {
			a.t.Cleanup(func() { conn.Close() })
			err = echo(conn)
		}
		return err
	})
}

// agree compares what came with what the edges explain, and wants as many openings as there are
// flows, and copies.
func (a *agents) agree(taps []edgeTap, came map[edgeTap]*arrivals, service string, flows int,
	copied bool) {
	a.t.Helper()
	want := map[string][]dissection{} // by edge: what it explains
	second := map[netip.Addr]netip.Addr{}
	for _, tap := range taps {
		if want[tap.edge] == nil {
			want[tap.edge] = a.explained(tap.edge, service, flows, second)
		}
	}
	deadline := time.Now().Add(patience)
	for {
		openings, firsts, wrong := 0, 0, ""
		for _, tap := range taps {
			for _, d := range dissect(a.t, came[tap].all()) {
				if d.data {
					continue // has copies of its own, and no question
				}
				isSecond, ok := found(want[tap.edge], d, second)
				if !ok {
					wrong = fmt.Sprintf("%s sent %+v, and explains %+v", tap.edge, d,
						want[tap.edge])
				}
				if d.opening {
					openings++
				}
				if d.opening && !isSecond {
					firsts++
				}
			}
		}
		if wrong != "" {
			a.t.Fatal(wrong)
		}
		if firsts == flows && (openings == 2*flows || !copied) {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("%d openings of %d flows, %d with second copies", firsts, flows, openings)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// explained is what tshark reads of the packets that an edge explains, of which the headers are as
// they are named. Second notes the destinations of second copies by those of the first.
func (a *agents) explained(edge, service string, flows int,
	second map[netip.Addr]netip.Addr) (list []dissection) {
	a.t.Helper()
	var all []api.Explanation
	var frames [][]byte
	for i := range flows {
		told, err := a.client(edge).Explain(a.t.Context(), api.Question{Flow: &api.Flow{
			Source:      netip.AddrPortFrom(netip.MustParseAddr(talker), uint16(talkerPort+i)),
			Destination: netip.MustParseAddrPort(service), Protocol: config.TCP}})
		must(a.t, err)
		all = append(all, told...)
		for _, e := range told {
			frame, err := hex.DecodeString(e.Frame)
			must(a.t, err)
			frames = append(frames, frame)
		}
	}
	list = dissect(a.t, frames)
	if len(list) != len(all) {
		a.t.Fatalf("%s explains %d packets, and tshark reads %d", edge, len(all), len(list))
	}
	for i, e := range all {
		d := list[i]
		if d.opening != (e.Packet == "opening") || d.to != addressOf(a.t, e.Header) ||
			d.to != e.Path[0] {
			a.t.Fatalf("%s explains %+v, and tshark reads %+v", edge, e, d)
		}
		if e.OtherCopy != nil {
			second[d.to] = addressOf(a.t, e.OtherCopy.Header)
		}
	}
	return list
}

// found reports whether a segment is one of those that were explained, or the second copy of one.
func found(explained []dissection, d dissection, second map[netip.Addr]netip.Addr) (copy, ok bool) {
	for _, e := range explained {
		if e.inner != d.inner || e.outer != d.outer || e.opening != d.opening {
			continue
		}
		if e.to == d.to || second[e.to] == d.to {
			return e.to != d.to, true
		}
	}
	return false, false
}
