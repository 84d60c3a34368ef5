package protection

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
)

// lookout waits at interfaces for the first packet to the server.
type lookout struct {
	sockets []*os.File
	came    chan time.Time
}

// snapBytes of a packet hold all of its headers.
const snapBytes = 256

// watchFor opens a lookout on an interface of each node.
func watchFor(nodes []*linux.Netns, port string) (*lookout, error) {
	l := &lookout{came: make(chan time.Time, len(nodes))}
	for _, node := range nodes {
		err := node.Do(func() error {
			socket, err := listenRaw(port)
			l.sockets = append(l.sockets, socket)
			return err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch interface %s: %w", port, err), l.close())
		}
	}
	server := netip.MustParseAddr(serverAddress).AsSlice()
	for _, socket := range l.sockets {
		go func() {
			packet := make([]byte, snapBytes)
			for {
				n, err := socket.Read(packet)
				if err != nil {
					return
				}
				if bytes.Contains(packet[:n], server) {
					l.came <- time.Now()
					return
				}
			}
		}()
	}
	return l, nil
}

// listenRaw receives what comes in by an interface.
func listenRaw(port string) (*os.File, error) {
	device, err := net.InterfaceByName(port)
	if err != nil {
		return nil, err
	}
	// in network order
	ipv6 := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IPV6 >> 8, unix.ETH_P_IPV6 & 0xff})
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv6,
		Ifindex: device.Index}); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), port), nil
}

// first is when the first packet came, wherever; false if none did.
func (l *lookout) first() (time.Time, bool) {
	select {
	case at := <-l.came:
		return at, true
	case <-time.After(telemetryTail):
		return time.Time{}, false
	}
}

func (l *lookout) close() (err error) {
	for _, socket := range l.sockets {
		if socket != nil {
			err = errors.Join(err, socket.Close())
		}
	}
	return err
}
