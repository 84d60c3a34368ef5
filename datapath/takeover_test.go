package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/linux/linuxtest"
)

// passProgram is a foreign XDP program that passes everything.
func passProgram(t testing.TB) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
	})
	must(t, err)
	t.Cleanup(func() { program.Close() })
	return program
}

// occupy attaches a foreign program.
func occupy(t testing.TB, iface string) {
	t.Helper()
	l, err := link.AttachXDP(link.XDPOptions{Program: passProgram(t),
		Interface: mustLink(t, iface).Attrs().Index})
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

// attached is the id of an interface's XDP program, 0 for none.
func attached(t testing.TB, iface string) uint32 {
	t.Helper()
	if xdp := mustLink(t, iface).Attrs().Xdp; xdp != nil {
		return xdp.ProgId
	}
	return 0
}

// servedEdge is an edge on both interfaces, with one service of one backend.
func servedEdge(t testing.TB, w *world, backend uint16) *Edge {
	t.Helper()
	e, err := OpenEdge(w.dir, takeoverConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	must(t, fillEdge(e, backend))
	return e
}

func takeoverConfig(t testing.TB) EdgeConfig {
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "near", Side: External, Mode: Native},
		{Name: "far", Side: Internal, Mode: Native}}
	return config
}

// fillEdge gives an edge its one service. It is called beside the test's own goroutine.
func fillEdge(e *Edge, backend uint16) error {
	chains := make([]chain, tableBuckets)
	for i := range chains {
		chains[i] = chain{Length: 1, Candidates: 1}
		chains[i].IDs[0] = bigEndian(backend)
	}
	return errors.Join(
		e.SetService(ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, 1, tableBuckets),
		putChains(e, 1, chains),
	)
}

// crossing sends frames into "near" and sees them come out of "far", a few at a time.
type crossing struct {
	in, out wire
	ifindex int
	sent    int
	to      map[string]int // frames by outer destination
}

func newCrossing(t testing.TB) *crossing {
	t.Helper()
	occupy(t, "nearpeer") // or else a veth loses what comes out of the other end's program
	occupy(t, "farpeer")
	return &crossing{in: openWire(t), out: openWireOn(t, "farpeer"),
		ifindex: mustLink(t, "nearpeer").Attrs().Index, to: map[string]int{}}
}

const crossingWindow = 16

// send sends a window of frames of different flows, and fails if one of them does not arrive in an
// outer packet.
func (c *crossing) send(t testing.TB, around func(inner []byte) []byte) {
	t.Helper()
	missing := map[uint16]bool{}
	for range crossingWindow {
		c.sent++
		port := uint16(c.sent)
		missing[port] = true
		frame := tcpFrame(t, tupleOf(clientV6, hostVIPv6, port), &layers.TCP{ACK: true})
		must(t, unix.Sendto(c.in.fd, around(frame), 0, &unix.SockaddrLinklayer{Ifindex: c.ifindex}))
	}
	buffer := make([]byte, 2048)
	for len(missing) > 0 {
		n, _, err := linuxtest.Receive(c.out.fd, buffer)
		if err != nil {
			t.Fatalf("after %d frames, %d were lost: %v", c.sent, len(missing), err)
		}
		packet := gopacket.NewPacket(buffer[:n], layers.LayerTypeEthernet, gopacket.Default)
		tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if outer, isIPv6 := packet.NetworkLayer().(*layers.IPv6); ok && isIPv6 &&
			outer.NextHeader == layers.IPProtocolIPv6 {
			delete(missing, uint16(tcp.SrcPort))
			c.to[outer.DstIP.String()]++
		}
	}
}

func unchanged(frame []byte) []byte { return frame }

// besides runs f in a thread of its own in the world's namespace, and calls again until f has
// ended.
func (w *world) besides(t testing.TB, f func() error, again func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(w.netns, unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	for {
		select {
		case err := <-done:
			must(t, err)
			return
		default:
			again()
		}
	}
}

// TestEdgeTakeOver: while frames run, tables are replaced, and one agent after the other takes
// over. No frame is lost; once an agent has committed, frames go by its table.
func TestEdgeTakeOver(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := servedEdge(t, w, 1)
	must(t, commit(e))
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	c := newCrossing(t)
	c.send(t, unchanged)
	config := takeoverConfig(t)
	const generations = 12
	before := e
	w.besides(t, func() error {
		for i := uint16(2); i <= generations; i += 2 {
			if err := fillEdge(before, i); err != nil { // the running one gets another table
				return err
			}
			before.Close() // its agent ends
			next, err := OpenEdge(w.dir, config)
			if err != nil {
				return err
			}
			if err := errors.Join(fillEdge(next, i+1), commit(next)); err != nil {
				return err
			}
			before = next
		}
		return nil
	}, func() { c.send(t, unchanged) })
	t.Cleanup(before.Close)

	clear(c.to)
	c.send(t, unchanged)
	if want := fmt.Sprintf("fcbb:bb00:%x::", generations+1); c.to[want] != crossingWindow {
		t.Errorf("at last, frames went to %v; want all to %s", c.to, want)
	}
	drops, err := before.Drops()
	must(t, err)
	for _, d := range drops {
		if d.Packets != 0 {
			t.Errorf("dropped %d as %s", d.Packets, d.Name)
		}
	}
	// Frames may have been handed to the kernel in the moments of change; counters run on over all
	// agents.
	outcomes, err := before.Outcomes()
	must(t, err)
	counted := map[string]uint64{}
	for _, o := range outcomes {
		counted[o.Name] = o.Packets
	}
	if got := counted["redirected"] + counted["handed"]; got != uint64(c.sent) ||
		counted["redirected"] == 0 {
		t.Errorf("%d frames were sent, but counted %v", c.sent, counted)
	}
}

// commit attaches, natively.
func commit(program interface{ Commit() ([]Attachment, error) }) error {
	attachments, err := program.Commit()
	for _, a := range attachments {
		if strings.Contains(a.link, "xdp") && (a.Mode != Native || a.Warning != "") {
			err = errors.Join(err, fmt.Errorf("attached %+v", a))
		}
	}
	return err
}

// TestHostTakeOver: while frames run that a host passes on, one agent after the other takes over.
// No frame is lost, and open connections stay counted.
func TestHostTakeOver(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	config := hostConfig(t)
	config.Interfaces = []HostInterface{{Name: "near", Mode: Native}, {Name: "far", Mode: Native}}
	open := func() (*Host, error) {
		h, err := OpenHost(w.dir, config)
		if err != nil {
			return nil, err
		}
		return h, errors.Join(h.SetService(ServiceKey{VIP: hostVIPv6, Protocol: 6}, 1,
			acceptance.Policy{}), commit(h))
	}
	h, err := open()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	setBusy(t, h, 1, 7)
	c := newCrossing(t)
	around := func(frame []byte) []byte {
		outer := packettest.To(netip.MustParseAddr("fcbb:bb00:1:2::")).Around(t, frame[14:])
		return packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t, outer)
	}
	c.send(t, around)
	w.besides(t, func() error {
		for range 6 {
			h.Close()
			if h, err = open(); err != nil {
				return err
			}
		}
		return nil
	}, func() { c.send(t, around) })
	t.Cleanup(h.Close)
	if busy, err := h.Busy(1, acceptance.Policy{}); err != nil || busy != 7 {
		t.Errorf("%d open connections, %v; want 7", busy, err)
	}
	traffic, err := h.Traffic(1)
	must(t, err)
	if traffic.PassedOn.Packets != uint64(c.sent) {
		t.Errorf("passed on %d of %d frames", traffic.PassedOn.Packets, c.sent)
	}
}

// TestOpenChangesNothing: programs that were opened and filled, but not committed, see no frame.
func TestOpenChangesNothing(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	must(t, commit(servedEdge(t, w, 1)))
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	c := newCrossing(t)
	ids := [2]uint32{attached(t, "near"), attached(t, "far")}
	servedEdge(t, w, 2).Close()
	c.send(t, unchanged)
	if now := [2]uint32{attached(t, "near"), attached(t, "far")}; now != ids ||
		c.to["fcbb:bb00:1::"] != crossingWindow {
		t.Errorf("programs %d became %d; frames went to %v", ids, now, c.to)
	}
}
