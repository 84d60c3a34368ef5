package pathprobe

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// interfaceName is the interface by which probes come into the machine, so that they are forwarded
// as traffic from elsewhere is: a kernel does not execute its own SIDs on packets that it makes
// itself.
const interfaceName = "srv6probe"

// socket sends and receives probes. The interface goes with the process. One thread waits at it and
// reads; wake and send may be called from others.
type socket struct {
	tun  int // probes are written to it
	back int // and come back to it
	wake int // an eventfd
}

func openSocket(own netip.Addr) (s *socket, err error) {
	s = &socket{tun: -1, back: -1, wake: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.tun, err = openTun(); err != nil {
		return s, err
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return s, fmt.Errorf("make an eventfd: %w", err)
	}
	if s.back, err = unix.Socket(unix.AF_INET6,
		unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
		err = unix.Bind(s.back, &unix.SockaddrInet6{Addr: own.As16(), Port: Port})
	}
	if err != nil {
		err = fmt.Errorf("listen for probes: %w; is %s an address of this machine, and not "+
			"listened on by another?", err,
			netip.AddrPortFrom(own, Port))
	}
	return s, err
}

// openTun makes the interface.
func openTun() (fd int, err error) {
	const device = "/dev/net/tun"
	fd, err = unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w; probes need it: load the module tun, and run as root",
			device, err)
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
		err = fmt.Errorf("make interface %s: %w; is another prober running in this network "+
			"namespace?", interfaceName, err)
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
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
	_, err := unix.Write(s.tun, packet)
	return err
}

// lacksInterface says of an error of send that the interface is gone, or down.
func lacksInterface(err error) bool {
	return errors.Is(err, unix.EBADFD) || errors.Is(err, unix.EBADF) || errors.Is(err, unix.EIO)
}

// renew makes the interface anew.
func (s *socket) renew() (err error) {
	if s.tun >= 0 {
		_ = unix.Close(s.tun) // and with it what is left of the interface
		s.tun = -1
	}
	s.tun, err = openTun()
	return err
}

// wait returns when something came, after so long, or when it is interrupted.
func (s *socket) wait(most time.Duration) error {
	timeout := unix.NsecToTimespec(int64(max(most, 0)))
	_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(s.back), Events: unix.POLLIN},
		{Fd: int32(s.wake), Events: unix.POLLIN}}, &timeout, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for probes: %w", err)
	}
	return nil
}

// receive reads what has come; false if there is nothing more, or an ICMP error for a probe, of
// which silence says the same.
func (s *socket) receive(buffer []byte) (n int, came bool) {
	n, _, err := unix.Recvfrom(s.back, buffer, 0)
	return n, err == nil
}

// interrupt ends wait, now and for ever.
func (s *socket) interrupt() error {
	_, err := unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

func (s *socket) close() (err error) {
	for _, fd := range []int{s.back, s.wake, s.tun} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
