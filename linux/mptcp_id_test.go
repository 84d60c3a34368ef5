package linux_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// The kernel keeps the ID of a subflow that the other end has ended, and takes it
// for no other port until it is told to forget it.
func TestForgetLocalID(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ns.Do(func() error {
		must(linuxtest.IP("link set lo up"))
		must(linux.SetPathManager(""))
		heard, err := linux.OpenMPTCP()
		must(err)
		defer heard.Close()
		config, dialer := net.ListenConfig{}, net.Dialer{Timeout: 10 * time.Second}
		config.SetMultipathTCP(true)
		dialer.SetMultipathTCP(true)
		listener, err := config.Listen(context.Background(), "tcp4", "127.0.0.1:0")
		must(err)
		defer listener.Close()
		connection, err := dialer.Dial("tcp4", listener.Addr().String())
		must(err)
		defer connection.Close()
		other, err := listener.Accept()
		must(err)
		defer other.Close()
		_, err = other.Write([]byte{1})
		must(err)
		_, err = connection.Read(make([]byte, 1))
		must(err)
		sockets, err := linux.TCPSockets()
		must(err)
		end := connection.LocalAddr().(*net.TCPAddr).AddrPort()
		remote := connection.RemoteAddr().(*net.TCPAddr).AddrPort()
		own := sockets[linux.TCPEnds{Local: end, Remote: remote}].MPTCP
		if own.Token == 0 || !own.First || own.Joined {
			t.Fatalf("the connection is %+v", own)
		}
		open := func(port uint16) error {
			return linux.CreateSubflow(own.Token, 9, netip.AddrPortFrom(end.Addr(), port), remote,
				false)
		}
		await := func(what string, kind uint8, token uint32) {
			t.Helper()
			for {
				events, err := heard.Next(10 * time.Second)
				must(err)
				if len(events) == 0 {
					t.Fatal("no news: " + what)
				}
				for _, e := range events {
					if e.Kind == kind && e.Token == token {
						return
					}
				}
			}
		}
		must(open(20001))
		theirs := sockets[linux.TCPEnds{Local: remote, Remote: end}].MPTCP.Token
		await("a subflow is there", linux.MPTCPSubflowEstablished, theirs)
		must(linux.DestroySubflow(theirs, remote, netip.AddrPortFrom(end.Addr(), 20001)))
		await("the other end has ended it", linux.MPTCPSubflowClosed, own.Token)
		if err := open(20002); !errors.Is(err, unix.EINVAL) {
			t.Errorf("the ID is free: %v", err)
		}
		must(linux.ForgetLocalID(own.Token, 9))
		return open(20002)
	}))
}
