package controller

import (
	"errors"
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/peer"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
)

// datagrams is the way by which changes reach a head-end ahead of its stream: a system call of the
// event loop, where the stream takes several goroutines on either side.
type datagrams struct {
	seal   southbound.Seal
	socket *net.UDPConn
	raw    syscall.RawConn
}

// openDatagrams opens the way that a head-end offers, between the addresses of its stream; nil: it
// offers none.
func openDatagrams(offer *southboundpb.Datagrams, stream *peer.Peer) (*datagrams, error) {
	if offer == nil || stream == nil {
		return nil, nil
	}
	from, ok := stream.LocalAddr.(*net.TCPAddr)
	to, also := stream.Addr.(*net.TCPAddr)
	if !ok || !also {
		return nil, nil // not by TCP
	}
	if offer.GetPort() == 0 || offer.GetPort() > math.MaxUint16 {
		return nil, errors.New("the hello's port of datagrams is none")
	}
	seal, err := southbound.NewSeal(offer.GetKey())
	if err != nil {
		return nil, err
	}
	socket, err := net.DialUDP("udp", &net.UDPAddr{IP: from.IP, Zone: from.Zone},
		&net.UDPAddr{IP: to.IP, Zone: to.Zone, Port: int(offer.GetPort())})
	if err != nil {
		return nil, err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		socket.Close()
		return nil, err
	}
	return &datagrams{seal, socket, raw}, nil
}

// send sends a change, if it fits, without waiting. What is lost comes by the stream.
func (d *datagrams) send(change *southboundpb.Change) {
	if d == nil {
		return
	}
	octets := d.seal.Datagram(change)
	if octets == nil {
		return
	}
	_ = d.raw.Write(func(fd uintptr) bool {
		_, _ = unix.Write(int(fd), octets)
		return true
	})
}

func (d *datagrams) close() {
	if d != nil {
		d.socket.Close()
	}
}
