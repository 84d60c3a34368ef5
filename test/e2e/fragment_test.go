package e2e_test

import (
	"bytes"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/lab"
)

const (
	datagramBytes = 3000 // more than any link carries
	datagrams     = 50   // of each family
)

// serveDatagrams echoes on a node until the end of the test.
func serveDatagrams(t *testing.T, address string) error {
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		buffer := make([]byte, 2*datagramBytes)
		for n, from, err := socket.ReadFrom(buffer); err == nil; n, from, err = socket.ReadFrom(
			buffer) {
			socket.WriteTo(buffer[:n], from)
		}
	}()
	return nil
}

// checkFragments: datagrams arrive that are larger than any link, and TCP segments of a client that
// lets routers fragment them.
func checkFragments(t *testing.T, l *lab.Lab, content []byte) {
	t.Helper()
	for family, address := range transferAddresses {
		var conn net.Conn
		inside(t, l, "client", func() (err error) {
			conn, err = net.Dial("udp", address)
			return err
		})
		if err := exchange(conn, content); err != nil {
			t.Errorf("datagrams over %s: %v", family, err)
		}
		conn.Close()
	}
	var conn net.Conn
	inside(t, l, "client", func() (err error) {
		conn, err = fragmentable.Dial("tcp", transferAddresses["ipv4"])
		return err
	})
	if err := transfer(conn, content); err != nil {
		t.Errorf("segments that may be fragmented: %v", err)
	}
}

// fragmentable clears the DF bit of all packets.
var fragmentable = net.Dialer{Timeout: transferTime,
	Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER,
				unix.IP_PMTUDISC_DONT)
		}); e != nil {
			return e
		}
		return err
	}}

// exchange sends datagrams and wants each of them back. While the path MTU is being learnt some are
// lost, as they may be.
func exchange(conn net.Conn, content []byte) error {
	received := make([]byte, 2*datagramBytes)
	for i := range datagrams {
		sent := content[i*datagramBytes:][:datagramBytes]
		for try := 0; ; try++ {
			if _, err := conn.Write(sent); err != nil && try > 5 {
				return err
			}
			conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			n, err := conn.Read(received)
			if err == nil && bytes.Equal(received[:n], sent) {
				break
			}
			if try > 10 {
				return fmt.Errorf("datagram %d has no answer: %w", i, err)
			}
		}
	}
	return nil
}
