package datapath

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"sextant/linux/linuxtest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

var tlvSettings = frer.Settings{HistoryLog2: 10, Bits: frer.BitsTLV, Reset: frer.DefaultReset}

// twoLists leads to the egress through r2 and through r3.
func twoLists(form srpolicy.Redundancy) []srpolicy.List {
	segments := func(r int) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:0:%d::e", r)), mergeSID1.Addr()}
	}
	return []srpolicy.List{
		{Name: "r2", Segments: segments(2), Redundancy: form, Flow: 1},
		{Name: "r3", Segments: segments(3), Redundancy: form, Flow: 2},
	}
}

func mirrorPolicy(lists []srpolicy.List) ([]srpolicy.Rule, srpolicy.Policy) {
	rules := []srpolicy.Rule{
		{Match: srpolicy.Match{Destination: netip.MustParsePrefix("2001:db8:2::/64")},
			Policy: "protected"},
		{Match: srpolicy.Match{Destination: netip.MustParsePrefix("192.0.2.0/24")},
			Policy: "protected"},
	}
	return rules, srpolicy.Policy{Name: "protected",
		Paths: []srpolicy.CandidatePath{{Name: "both", Action: srpolicy.Mirror, Lists: lists}}}
}

// TestMirrorAndMerge sends UDP of both families over two paths of the kernel's End.X, and each
// datagram arrives once, with native and with generic XDP where it comes in.
func TestMirrorAndMerge(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) { mirrorAndMerge(t, mode) })
	}
}

func mirrorAndMerge(t *testing.T, mode Mode) {
	n := newNetwork(t, "r2", "r3")
	n.mode = mode
	rules, policy := mirrorPolicy(twoLists(srpolicy.TLV))
	h := n.openHeadend(rules, policy)
	m := n.openMerge(tlvSettings, "r2", "r3")

	const datagrams = 100
	for i, to := range []string{"[2001:db8:2::2]:4433", "192.0.2.2:4433"} {
		if got := n.datagrams(to, datagrams); got != datagrams {
			drops, _ := h.Drops()
			outcomes, _ := h.Outcomes()
			mdrops, _ := m.Drops()
			t.Errorf("%s: %d of %d datagrams arrived\nhead-end %v %v\nmerge %v", to, got, datagrams,
				drops, outcomes, mdrops)
		}
		stats := settled(t, m, 2)
		if stats.Passed != uint64(datagrams*(i+1)) || stats.Duplicate != stats.Passed ||
			stats.Missing() != 0 {
			drops, _ := h.Drops()
			outcomes, _ := h.Outcomes()
			traffic, _ := h.ListTraffic(0)
			t.Errorf("%s: %+v\nhead-end %v %v %v", to, stats, drops, outcomes, traffic)
		}
		for path, p := range stats.Paths {
			if p.Packets != stats.Passed || p.Delays != p.Packets || p.DelayLeast < 0 ||
				p.DelayMost > wirePatience {
				t.Errorf("path %d: %+v", path, p)
			}
		}
	}
}

// datagrams sends so many from h1 to h2, and returns how many arrive.
func (n *network) datagrams(to string, count int) int {
	return n.paced(to, count, func(int) {})
}

// paced is datagrams with a millisecond between them, and something that happens meanwhile.
func (n *network) paced(to string, count int, meanwhile func(sent int)) int {
	n.t.Helper()
	var receiver net.PacketConn
	var sender net.Conn
	n.do("h2", func() (err error) {
		receiver, err = net.ListenPacket("udp", to)
		return err
	})
	defer receiver.Close()
	n.do("h1", func() (err error) {
		sender, err = net.Dial("udp", to)
		return err
	})
	defer sender.Close()
	must(n.t, linuxtest.HaveRoom(receiver.(*net.UDPConn))) // read when all are sent
	for i := range count {
		_, err := fmt.Fprintf(sender, "%d", i)
		must(n.t, err)
		time.Sleep(time.Millisecond)
		meanwhile(i)
	}
	arrived := 0
	buffer := make([]byte, 64)
	for {
		wait := wirePatience
		if arrived >= count {
			wait = 300 * time.Millisecond // for one that comes twice
		}
		must(n.t, receiver.SetReadDeadline(time.Now().Add(wait)))
		if _, _, err := receiver.ReadFrom(buffer); err != nil {
			return arrived
		}
		arrived++
	}
}

// TestLocalTrafficIsNumberedAfterSegmentation sends a stream from the head-end itself. The kernel's
// segments are large until they leave, and of each packet on the wire exactly two copies must come,
// with a number of their own. The stream also has to learn that less than the interface's MTU fits.
func TestLocalTrafficIsNumberedAfterSegmentation(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	rules, policy := mirrorPolicy(twoLists(srpolicy.TLV))
	h := n.openHeadend(rules, policy)
	m := n.openMerge(tlvSettings, "r2", "r3")
	const size = 4 << 20
	if got := n.stream("pe1", "[2001:db8:2::2]:80", size); got != size {
		drops, _ := h.Drops()
		outcomes, _ := h.Outcomes()
		t.Errorf("%d of %d bytes arrived\n%v %v", got, size, drops, outcomes)
	}
	stats := settled(t, m, 2)
	numbered, err := h.Numbered(0)
	must(t, err)
	if stats.Passed != numbered || stats.Duplicate != numbered || stats.Missing() != 0 ||
		numbered < size/1500 {
		t.Errorf("numbered %d packets; %+v", numbered, stats)
	}
}

// settled are an instance's counters when no copy is under way any more: they are read until they
// stay the same for a while.
func settled(t *testing.T, m *Merge, paths int) InstanceStats {
	t.Helper()
	const steady = 10
	same := 0
	for last := uint64(0); ; time.Sleep(20 * time.Millisecond) {
		stats, err := m.Stats(0, paths)
		must(t, err)
		now := stats.Passed + stats.Duplicate
		if same++; now != last {
			same, last = 0, now
		}
		if same == steady {
			return stats
		}
	}
}

// inFlight is how many bytes of a stream are under way at most: as many as the queues between the
// namespaces hold twice, however long the machine leaves them alone.
const inFlight = 64 << 10

// stream sends so many bytes over TCP to a listener on h2, and returns how many arrive.
func (n *network) stream(from, to string, size int64) int64 {
	n.t.Helper()
	var listener net.Listener
	n.do("h2", func() (err error) {
		listener, err = net.Listen("tcp", to)
		return err
	})
	defer listener.Close()
	arrived := make(chan int64)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			arrived <- 0
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * wirePatience))
		count, _ := io.Copy(io.Discard, c)
		arrived <- count
	}()
	var c net.Conn
	n.do(from, func() (err error) {
		c, err = net.DialTimeout("tcp", to, wirePatience)
		return err
	})
	_ = c.SetDeadline(time.Now().Add(2 * wirePatience))
	must(n.t, c.(*net.TCPConn).SetWriteBuffer(inFlight))
	if _, err := c.Write(make([]byte, size)); err != nil {
		n.t.Errorf("send: %v", err)
	}
	c.Close()
	return <-arrived
}

// TestForwardedStreamsArrive sends TCP of both families from h1, with each form of numbers and
// without, over the kernel's End and End.X.
func TestForwardedStreamsArrive(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	const size = 1 << 20
	for _, form := range []srpolicy.Redundancy{srpolicy.TLV, srpolicy.SID, srpolicy.None} {
		t.Run(form.String(), func(t *testing.T) {
			lists := twoLists(form)
			// End, where the other has End.X
			lists[1].Segments[0] = netip.MustParseAddr("fcbb:0:3::1")
			lists[1].Reduced = true
			rules, policy := mirrorPolicy(lists)
			n.openHeadend(rules, policy)
			settings := tlvSettings
			if form == srpolicy.SID {
				settings.Bits = frer.BitsSID
			}
			m := n.openMerge(settings, "r2", "r3")
			for _, to := range []string{"[2001:db8:2::2]:80", "192.0.2.2:80"} {
				if got := n.stream("h1", to, size); got != size {
					t.Errorf("%s: %d of %d bytes arrived", to, got, size)
				}
			}
			stats := settled(t, m, 2)
			must(t, m.DeleteInstance(0))
			if form == srpolicy.None {
				if stats.Passed != 0 {
					t.Errorf("packets without a number were eliminated: %+v", stats)
				}
				return
			}
			if stats.Passed == 0 || stats.Duplicate != stats.Passed || stats.Missing() != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// TestCarriersThroughTheKernel sends over NEXT-C-SID carriers, which the kernel's End shifts:
// without an SRH, and with one that has the number.
func TestCarriersThroughTheKernel(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	var lists []srpolicy.List
	for i, r := range []string{"2", "3"} {
		n.ip("r"+r, "route add fcbb:0:"+
			r+"::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev pe2")
		// the router's id, then what the egress's SID has behind the block
		carrier := netip.MustParseAddr("fcbb:0:" + r + ":4:0:f::")
		lists = append(lists, srpolicy.List{Name: r, Segments: []netip.Addr{carrier}, Reduced: true,
			Redundancy: srpolicy.TLV, Flow: uint32(i + 1)})
	}
	rules, policy := mirrorPolicy(lists)
	h := n.openHeadend(rules, policy)
	m := n.openMerge(tlvSettings, "r2", "r3")
	const datagrams = 50
	if got := n.datagrams("[2001:db8:2::2]:4433", datagrams); got != datagrams {
		t.Errorf("with numbers: %d of %d datagrams arrived", got, datagrams)
	}
	stats := settled(t, m, 2)
	if stats.Passed != datagrams || stats.Duplicate != datagrams {
		t.Errorf("%+v", stats)
	}
	for i := range lists {
		lists[i].Redundancy = srpolicy.None
	}
	rules, policy = mirrorPolicy(lists)
	table, err := srpolicy.Compile(rules, []srpolicy.Policy{policy}, h.Source(), nil)
	must(t, err)
	must(t, h.SetTable(table))
	if got := n.datagrams("[2001:db8:2::2]:4433", datagrams); got != 2*datagrams {
		t.Errorf("without: %d datagrams arrived, want each twice", got)
	}
}
