package linux_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// neighborBurst is more than the kernel keeps for a neighbour that it looks for.
const neighborBurst = 1000

// TestAwaitNeighbor has a neighbour appear late. Datagrams that are sent once it is known all
// arrive; without waiting, the kernel drops some of the same burst and says nothing.
func TestAwaitNeighbor(t *testing.T) {
	for _, waits := range []bool{false, true} {
		here, there := newNetns(t), newNetns(t)
		must(t, linuxtest.IP(strings.NewReplacer("HERE", here.Name(), "THERE",
			there.Name()).Replace(`-n HERE link add e0 type veth peer name e1 netns THERE
-n HERE addr add fd00::1/64 dev e0 nodad
-n HERE link set e0 up
-n THERE link set e1 up
-n HERE route add fd00:9::/64 via fd00::2`)))
		must(t, here.Do(func() error {
			return linux.WriteSysctl("net.ipv6.neigh.e0.retrans_time_ms", "50")
		}))
		known := make(chan error, 1)
		go func() {
			known <- here.Do(func() error {
				return linux.AwaitNeighbor(t.Context(), netip.MustParseAddr("fd00:9::2"))
			})
		}()
		var socket net.Conn
		must(t, here.Do(func() (err error) {
			socket, err = net.Dial("udp", "[fd00:9::2]:9")
			return err
		}))
		defer socket.Close()
		burst := func() {
			for range neighborBurst {
				if _, err := socket.Write(make([]byte, 1000)); err != nil {
					t.Fatalf("a datagram is refused: %v", err)
				}
			}
		}
		if !waits {
			burst()
		}
		select {
		case err := <-known:
			t.Fatalf("known before it is there: %v", err)
		default:
		}
		var listener net.PacketConn
		must(t, linuxtest.IP("-n "+there.Name()+" addr add fd00:9::2/128 dev e1 nodad"))
		must(t, there.Do(func() (err error) {
			if listener, err = net.ListenPacket("udp", "[fd00:9::2]:9"); err == nil {
				err = linuxtest.HaveRoom(listener.(*net.UDPConn))
			}
			return err
		}))
		defer listener.Close()
		must(t, linuxtest.IP("-n "+there.Name()+" addr add fd00::2/64 dev e1 nodad"))
		must(t, <-known)
		if waits {
			burst()
		}
		_, err := socket.Write([]byte("end"))
		must(t, err)
		came := 0
		for b := make([]byte, 2000); ; came++ {
			must(t, listener.SetReadDeadline(time.Now().Add(10*time.Second)))
			n, _, err := listener.ReadFrom(b)
			must(t, err)
			if n == 3 {
				break
			}
		}
		if t.Logf("waits: %v, came %d of %d", waits, came, neighborBurst); waits != (came ==
			neighborBurst) {
			t.Errorf("waits: %v, but %d of %d datagrams came", waits, came, neighborBurst)
		}
	}
}

// TestAwaitNeighborWithout: own addresses need none, and what has no route or no answer says so.
// The kernel makes fd00::1 its own some time after the command that adds it.
func TestAwaitNeighborWithout(t *testing.T) {
	ns := newNetns(t)
	must(t, linuxtest.IP(strings.ReplaceAll(`-n NAME link set lo up
-n NAME link add e0 type veth peer name e1
-n NAME addr add fd00::1/64 dev e0 nodad
-n NAME link set e0 up
-n NAME link set e1 up`, "NAME", ns.Name())))
	must(t, ns.Do(func() error {
		for text, want := range map[string]string{"::1": "", "fd00::1": "",
			"fd01::1": "route to fd01::1"} {
			err := linux.AwaitNeighbor(t.Context(), netip.MustParseAddr(text))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := linux.AwaitNeighbor(ctx, netip.MustParseAddr("fd00::2"))
		want := "the neighbour fd00::2 on the way to fd00::2 does not answer"
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("fd00::2: %v, want %q", err, want)
		}
		done := make(chan error, 1)
		go func() {
			done <- ns.Do(func() error {
				return linux.AwaitNeighbor(t.Context(), netip.MustParseAddr("fd00::3"))
			})
		}()
		awaitNeighborEntry(t, "e0", "fd00::3")
		must(t, linuxtest.IP("-n "+ns.Name()+" addr add fd00::3/64 dev e0 nodad"))
		return <-done
	}))
}

// awaitNeighborEntry waits until the kernel looks for the link address of a neighbour.
func awaitNeighborEntry(t *testing.T, dev, a string) {
	t.Helper()
	link, err := netlink.LinkByName(dev)
	must(t, err)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		known, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V6)
		must(t, err)
		if slices.ContainsFunc(known, func(n netlink.Neigh) bool { return n.IP.String() == a }) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the kernel does not look for %s", a)
}
