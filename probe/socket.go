package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// interfaceName is the interface by which probes come into the machine, so that they are forwarded as traffic from elsewhere is: a
// kernel does not execute its own SIDs on packets that it makes itself.
const interfaceName = "srv6probe"

// socket sends and receives probes. The interface goes with the process.
type socket struct {
	tun  *os.File
	back *net.UDPConn
}

func openSocket(own netip.Addr) (*socket, error) {
	tun, err := openTun()
	if err != nil {
		return nil, err
	}
	back, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, Port)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for probes: %w; is %s an address of this machine, and not listened on by another?",
			err, netip.AddrPortFrom(own, Port)), tun.Close())
	}
	return &socket{tun: tun, back: back}, nil
}

// openTun makes the interface.
func openTun() (*os.File, error) {
	const device = "/dev/net/tun"
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w; probes need it: load the module tun, and run as root", device, err)
	}
	request, err := unix.NewIfreq(interfaceName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = setUp()
	}
	if err != nil {
		err = fmt.Errorf("make interface %s: %w; is another prober running in this network namespace?", interfaceName, err)
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), device), nil
}

func setUp() error {
	link, err := netlink.LinkByName(interfaceName)
	if err != nil {
		return err
	}
	sysctl := "/proc/sys/net/ipv6/conf/" + interfaceName + "/forwarding"
	if err := os.WriteFile(sysctl, []byte("1"), 0o644); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func (s *socket) send(packet []byte) error {
	_, err := s.tun.Write(packet)
	return err
}

func (s *socket) receive(buffer []byte) (int, error) {
	n, _, err := s.back.ReadFromUDPAddrPort(buffer)
	return n, err
}

func (s *socket) close() error { return errors.Join(s.back.Close(), s.tun.Close()) }
