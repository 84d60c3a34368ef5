package pathtrace

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Sockets is the Wire of a machine: raw sockets, in the calling thread's network namespace.
type Sockets struct {
	to      unix.Sockaddr
	out     int
	in      []int
	of      []uint8 // protocols of in
	ipv4    bool
	buffer  []byte
	waiting []unix.PollFd
}

// OpenSockets opens sockets for probes to an address. Interface names the one by which they leave,
// "" for that of the route.
func OpenSockets(to netip.Addr, through string) (*Sockets, error) {
	s := &Sockets{ipv4: to.Is4(), buffer: make([]byte, 2048), out: -1}
	family, protocols := unix.AF_INET6, []int{protocolTCP, protocolICMPv6}
	s.to = &unix.SockaddrInet6{Addr: to.As16()}
	if s.ipv4 {
		family, protocols = unix.AF_INET, []int{protocolTCP, protocolICMP}
		s.to = &unix.SockaddrInet4{Addr: to.As4()}
	}
	var err error
	if s.out, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC,
		unix.IPPROTO_RAW); err != nil {
		s.Close()
		return nil, fmt.Errorf("open a raw socket: %w; run it as root", err)
	}
	if through != "" {
		if err := unix.BindToDevice(s.out, through); err != nil {
			s.Close()
			return nil, fmt.Errorf("send by interface %s: %w", through, err)
		}
	}
	for _, protocol := range protocols {
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
			protocol)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("open a raw socket: %w; run it as root", err)
		}
		s.in, s.of = append(s.in, fd), append(s.of, uint8(protocol))
		s.waiting = append(s.waiting, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	return s, nil
}

// Send sends an IP packet.
func (s *Sockets) Send(octets []byte) error {
	if err := unix.Sendto(s.out, octets, 0, s.to); err != nil {
		return fmt.Errorf("send a probe: %w", err)
	}
	return nil
}

// Receive returns what comes next behind an IP header.
func (s *Sockets) Receive(within time.Duration) (netip.Addr, uint8, []byte, bool, error) {
	end := s.Now().Add(within)
	for {
		for i, fd := range s.in {
			n, from, err := unix.Recvfrom(fd, s.buffer, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return netip.Addr{}, 0, nil, false, fmt.Errorf("receive answers: %w", err)
			}
			octets, address := s.buffer[:n], netip.Addr{}
			switch at := from.(type) {
			case *unix.SockaddrInet4:
				address = netip.AddrFrom4(at.Addr)
				octets = octets[min(n, int(octets[0]&0xf)*4):] // the header is there, too
			case *unix.SockaddrInet6:
				address = netip.AddrFrom16(at.Addr)
			}
			return address, s.of[i], octets, true, nil
		}
		left := end.Sub(s.Now())
		if left <= 0 {
			return netip.Addr{}, 0, nil, false, nil
		}
		timeout := unix.NsecToTimespec(int64(left))
		if _, err := unix.Ppoll(s.waiting, &timeout, nil); err != nil &&
			!errors.Is(err, unix.EINTR) {
			return netip.Addr{}, 0, nil, false, fmt.Errorf("wait for answers: %w", err)
		}
	}
}

// Now is the time.
func (*Sockets) Now() time.Time { return time.Now() }

// Close closes the sockets.
func (s *Sockets) Close() {
	for _, fd := range append(s.in, s.out) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// NewSeed draws a seed for a plan.
func NewSeed() uint64 {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	return binary.BigEndian.Uint64(seed[:])
}

// SourceTo is the address from which the kernel sends to an address.
func SourceTo(to netip.Addr) (source netip.Addr, err error) {
	family, at := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: to.As16(), Port: 9})
	if to.Is4() {
		family, at = unix.AF_INET, &unix.SockaddrInet4{Addr: to.As4(), Port: 9}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return source, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, at); err != nil { // nothing is sent
		return source, fmt.Errorf("there is no route to %s: %w", to, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return source, err
	}
	switch own := name.(type) {
	case *unix.SockaddrInet4:
		source = netip.AddrFrom4(own.Addr)
	case *unix.SockaddrInet6:
		source = netip.AddrFrom16(own.Addr)
	}
	return source, nil
}
