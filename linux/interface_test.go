package linux_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// newVeth makes a namespace with the two ends a and b of a link, both up.
func newVeth(t *testing.T) netns {
	t.Helper()
	ns := newNetns(t)
	err := ns.Do(func() error {
		// Without duplicate address detection the ends can send at once.
		if err := linux.WriteSysctl("net.ipv6.conf.all.accept_dad", "0"); err != nil {
			return err
		}
		if err := linux.WriteSysctl("net.ipv6.conf.default.accept_dad", "0"); err != nil {
			return err
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a", MTU: 9000}, PeerName: "b",
			PeerMTU: 9000}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		for _, name := range []string{"a", "b"} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// TestTxChecksumOffload looks at the packet that a UDP socket sends: with the
// offload a veth leaves a partial checksum in it, without it the right one.
func TestTxChecksumOffload(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			ns := newVeth(t)
			err := ns.Do(func() error {
				if err := linux.SetOffload("a", linux.TxChecksum, on); err != nil {
					return err
				}
				packet, err := sentDatagram("a", "b")
				if err != nil {
					return err
				}
				if complete := udpChecksumHolds(packet); complete == on {
					t.Errorf("offload %v: checksum complete = %v", on, complete)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sentDatagram sends a UDP datagram out of one interface and returns the IPv6
// packet that arrives on another.
func sentDatagram(from, to string) ([]byte, error) {
	ends := map[string]*net.Interface{}
	for _, name := range []string{from, to} {
		iface, err := net.InterfaceByName(name)
		if err != nil {
			return nil, err
		}
		ends[name] = iface
	}
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_IPV6))
	capture, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, int(protocol))
	if err != nil {
		return nil, err
	}
	defer unix.Close(capture)
	if err := unix.Bind(capture, &unix.SockaddrLinklayer{Protocol: protocol,
		Ifindex: ends[to].Index}); err != nil {
		return nil, err
	}
	sender, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(sender)
	allNodes := unix.SockaddrInet6{Port: 9, ZoneId: uint32(ends[from].Index),
		Addr: [16]byte{0xff, 2, 15: 1}}
	return retrySend(sender, capture, &allNodes)
}

// retrySend sends until the link-local source address is ready and the
// datagram has come out at the other end.
func retrySend(sender, capture int, to unix.Sockaddr) ([]byte, error) {
	timeout := unix.NsecToTimeval(int64(100 * time.Millisecond))
	if err := unix.SetsockoptTimeval(capture, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&timeout); err != nil {
		return nil, err
	}
	packet := make([]byte, 2048)
	for range 500 {
		if err := unix.Sendto(sender, []byte("sextant"), 0, to); err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for {
			n, _, err := linuxtest.Receive(capture, packet)
			if err != nil {
				break
			}
			if n == 40+8+7 && packet[6] == unix.IPPROTO_UDP {
				return packet[:n], nil
			}
		}
	}
	return nil, errors.New("no datagram came through")
}

// udpChecksumHolds sums the pseudo-header and the datagram of an IPv6 packet
// without extension headers (RFC 8200 section 8.1).
func udpChecksumHolds(packet []byte) bool {
	sum := uint32(unix.IPPROTO_UDP) + uint32(len(packet)-40)
	data := append(packet[8:len(packet):len(packet)], 0)
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum == 0xffff
}

func TestSetOffloadErrors(t *testing.T) {
	ns := newVeth(t)
	err := ns.Do(func() error { return linux.SetOffload("absent", linux.GRO, false) })
	want := "turn offload gro off on interface absent: no such device"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant    %s", err, want)
	}
	if err := ns.Do(func() error { return linux.SetOffload("a", linux.GRO, false) }); err != nil {
		t.Errorf("turning off what is off: %v", err)
	}
	err = ns.Do(func() error {
		return linux.SetOffload("a-name-that-is-too-long", linux.TxChecksum, false)
	})
	if !errors.Is(err, unix.ENODEV) {
		t.Errorf("a name longer than any interface's: %v, want ENODEV", err)
	}
}

// TestXDPPassOnJumboFrames: a plain XDP program would be refused on this MTU.
func TestXDPPassOnJumboFrames(t *testing.T) {
	ns := newVeth(t)
	program, err := linux.LoadXDPPass()
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { return linux.AttachXDP("a", program) }); err != nil {
		t.Fatal(err)
	}
	program.Close()
	err = ns.Do(func() error {
		link, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		if xdp := link.Attrs().Xdp; xdp == nil || xdp.AttachMode != nl.XDP_ATTACHED_DRV {
			t.Errorf("after the program's descriptor is closed the interface has %+v, want it "+
				"attached in native mode", xdp)
		}
		_, err = sentDatagram("b", "a")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAttachXDPTwice(t *testing.T) {
	ns := newVeth(t)
	program, err := linux.LoadXDPPass()
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	attach := func() error { return linux.AttachXDP("a", program) }
	if err := ns.Do(attach); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(attach); !errors.Is(err, unix.EBUSY) {
		t.Errorf("second AttachXDP: %v, want EBUSY", err)
	}
}

// TestQdisc: what a device queues by is told.
func TestQdisc(t *testing.T) {
	ns := newVeth(t)
	look := func(want string) {
		t.Helper()
		got := linux.Facts(linux.Query{Interfaces: []string{"a"}}).Interfaces["a"].Qdisc
		if got != want {
			t.Errorf("queueing discipline %q, want %q", got, want)
		}
	}
	err := ns.Do(func() error {
		look("noqueue")
		link, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		err = netlink.QdiscReplace(&netlink.GenericQdisc{QdiscType: "pfifo",
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index,
				Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}})
		look("pfifo")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
