package datapath

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/te/srpolicy"
)

// MirrorMTU leaves room for the note, and for two VLAN tags, in a frame that the kernel takes into
// the loop.
func TestMirrorMTUFitsTheLoop(t *testing.T) {
	const vlanTag, twoTags = 4, 8
	if room := LoopMTU + ethernetHeader +
		vlanTag - copyNoteLength - ethernetHeader - twoTags; srpolicy.MirrorMTU != room {
		t.Errorf("packets of %d bytes are mirrored, the loop takes %d", srpolicy.MirrorMTU, room)
	}
}

// TestLargePacketsAreMirroredOrAnswered: on links that carry more than the loop takes, the largest
// packet that fits is mirrored, and the sender of a larger one learns what does fit.
func TestLargePacketsAreMirroredOrAnswered(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	const linkMTU = 3500 // what native XDP takes
	for _, link := range []string{"h1 pe1", "r2 pe1", "r3 pe1", "r2 pe2", "r3 pe2", "h2 pe2"} {
		a, b, _ := strings.Cut(link, " ")
		n.mtu(a, b, linkMTU)
		n.mtu(b, a, linkMTU)
	}
	n.mtu("pe1", "r2", LoopMTU) // packets of pe1 itself leave by it
	rules, policy := mirrorPolicy(twoLists(srpolicy.TLV))
	h := n.openHeadend(rules, policy)
	m := n.openMerge(tlvSettings, "r2", "r3")
	n.mtu("pe1", "r2", linkMTU)
	must(t, h.ForgetNextHops())

	var receiver net.PacketConn
	var sender net.Conn
	n.do("h2", func() (err error) {
		receiver, err = net.ListenPacket("udp", "[2001:db8:2::2]:4433")
		return err
	})
	defer receiver.Close()
	n.do("h1", func() (err error) {
		sender, err = net.Dial("udp", "[2001:db8:2::2]:4433")
		return err
	})
	defer sender.Close()
	const headers = 40 + 8
	for end := time.Now().Add(wirePatience); ; time.Sleep(time.Millisecond) {
		_, err := sender.Write(make([]byte, srpolicy.MirrorMTU+1-headers))
		if errors.Is(err, unix.EMSGSIZE) {
			break
		}
		must(t, err)
		if time.Now().After(end) {
			drops, _ := h.LoopDrops()
			t.Fatalf("a packet of %d bytes is not answered; the loop has dropped %d",
				srpolicy.MirrorMTU+1, drops)
		}
	}
	_, err := sender.Write(make([]byte, srpolicy.MirrorMTU-headers))
	must(t, err)
	must(t, receiver.SetReadDeadline(time.Now().Add(wirePatience)))
	buffer := make([]byte, linkMTU)
	if got, _, err := receiver.ReadFrom(buffer); err != nil || got != srpolicy.MirrorMTU-headers {
		t.Errorf("received %d bytes, error %v", got, err)
	}
	if stats := settled(t, m, 2); stats.Passed != 1 || stats.Duplicate != 1 {
		t.Errorf("%+v", stats)
	}
	n.dropsInLoop(h, linkMTU-headers)
}

// dropsInLoop sends a datagram from pe1 itself that is larger than the loop takes, and wants it
// counted.
func (n *network) dropsInLoop(h *Headend, size int) {
	n.t.Helper()
	n.do("pe1", func() error {
		local, err := net.Dial("udp", "[2001:db8:2::2]:4433")
		if err != nil {
			return err
		}
		defer local.Close()
		if _, err := local.Write(make([]byte, size)); err != nil {
			return err
		}
		drops, err := h.LoopDrops()
		for end := time.Now().Add(wirePatience); err == nil && drops == 0 &&
			time.Now().Before(end); {
			time.Sleep(time.Millisecond)
			drops, err = h.LoopDrops()
		}
		if drops == 0 {
			n.t.Errorf("a frame larger than the loop is not counted, error %v", err)
		}
		return err
	})
}

// TestLocalInterfaceOfLargeMTU: an interface whose packets the loop does not take is refused, with
// what would do.
func TestLocalInterfaceOfLargeMTU(t *testing.T) {
	w := newWorld(t)
	far, err := netlink.LinkByIndex(w.far)
	must(t, err)
	must(t, netlink.LinkSetMTU(far, 9000))
	_, err = OpenHeadend(w.dir, HeadendConfig{
		Domain: Domain{
			Secret: testSecret,
		},
		HopLimit: 63,
		Local:    []string{"far"},
	})
	if err == nil || !strings.Contains(err.Error(), "ip link set far mtu 3400") {
		t.Errorf("error %v, want what would make it work", err)
	}
	if _, err := netlink.LinkByName(loopOuter); err == nil {
		t.Error("the loop was made for what was refused")
	}
}

func (n *network) mtu(node, device string, mtu int) {
	n.t.Helper()
	n.do(node, func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(link, mtu)
	})
}
