package datapath

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/lb/acceptance"
)

// busyHost counts connections, of a service of each family.
func busyHost(t testing.TB, w *world) *Host {
	t.Helper()
	h, err := OpenHost(w.dir, hostConfig(t))
	must(t, err)
	t.Cleanup(h.Close)
	must(t, h.SetService(ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}, 1,
		acceptance.Policy{}))
	must(t, h.SetService(ServiceKey{VIP: hostVIPv6, Protocol: 6}, 2, acceptance.Policy{}))
	_, err = h.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	return h
}

func wantBusy(t *testing.T, h *Host, what string, ipv4, ipv6 int) {
	t.Helper()
	var got [2]int
	eventually(t, fmt.Sprintf("%s: %d and %d connections", what, ipv4, ipv6), func() bool {
		for i := range got {
			var err error
			got[i], err = h.Busy(uint32(i+1), acceptance.Policy{})
			must(t, err)
		}
		return got == [2]int{ipv4, ipv6}
	})
	if t.Failed() {
		t.Fatalf("%s: counted %v", what, got)
	}
}

// TestBusy: connections count from when they are established until the server closes, with
// listeners of one family, of both, and with MPTCP.
func TestBusy(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(t, w)
	for name, listen := range map[string]func(vip netip.Addr) *net.TCPListener{
		"own family": func(vip netip.Addr) *net.TCPListener {
			return listenBy(t, vip,
				false)
		},
		"own family MPTCP": func(vip netip.Addr) *net.TCPListener { return listenBy(t, vip, true) },
		"dual-stack": func(netip.Addr) *net.TCPListener {
			return listenBy(t, netip.IPv6Unspecified(), false)
		},
		"dual-stack MPTCP": func(netip.Addr) *net.TCPListener {
			return listenBy(t, netip.IPv6Unspecified(), true)
		},
	} {
		l := listen(hostVIPv4)
		_, server4, peer4 := connectTo(t, l, hostVIPv4, clientV4)
		wantBusy(t, h, name+": IPv4", 1, 0)
		must(t, peer4.Close())
		wantBusy(t, h, name+": IPv4, closed by the client", 1, 0)
		must(t, server4.Close())
		wantBusy(t, h, name+": IPv4, closed", 0, 0)
		must(t, l.Close())

		l = listen(hostVIPv6)
		_, server6, peer6 := connectTo(t, l, hostVIPv6, clientV6)
		wantBusy(t, h, name+": IPv6", 0, 1)
		must(t, server6.Close())
		wantBusy(t, h, name+": IPv6, closed by the server", 0, 0)
		must(t, peer6.Close())
		must(t, l.Close())
	}
	for index := range uint32(2) {
		if signals, err := h.Signals(index + 1); err != nil ||
			signals != (HostSignals{Established: 4}) {
			t.Errorf("service %d: %+v, %v; 4 connections came about", index+1, signals, err)
		}
	}
}

// TestBusyFromBefore: a socket tells of its end to programs that were loaded after it began, too.
// It is taken away from what it was added to: from nothing, where all was unloaded meanwhile; from
// its service, where that was deleted meanwhile, and is there again or not; from nothing, where the
// sockets of another cgroup count since.
func TestBusyFromBefore(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	l := listenBy(t, hostVIPv4, false)
	closed := func(pair ...net.Conn) {
		for _, c := range pair {
			must(t, c.Close())
		}
	}
	key := ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}
	open := func(config HostConfig) *Host {
		h, err := OpenHost(w.dir, config)
		must(t, err)
		t.Cleanup(h.Close)
		must(t, h.SetService(key, 1, acceptance.Policy{}))
		_, err = h.Commit()
		must(t, err)
		return h
	}
	config := hostConfig(t)
	h := open(config)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	_, server, peer := connectTo(t, l, hostVIPv4, clientV4)
	wantBusy(t, h, "one", 1, 0)

	h.Close()
	must(t, Unload(w.dir))
	h = open(config)
	wantBusy(t, h, "loaded anew", 0, 0)
	_, server2, peer2 := connectTo(t, l, hostVIPv4, clientV4)
	wantBusy(t, h, "one more", 1, 0)
	closed(server, peer)
	_, server, peer = connectTo(t, l, hostVIPv4, clientV4)
	wantBusy(t, h, "one from before has ended, and one begun", 2, 0)

	must(t, h.DeleteService(key))
	closed(server, peer)
	wantBusy(t, h, "one has ended while its service was deleted", 1, 0)
	must(t, h.SetService(key, 1, acceptance.Policy{}))
	closed(server2, peer2)
	wantBusy(t, h, "the other has ended when it was there again", 0, 0)

	_, server, peer = connectTo(t, l, hostVIPv4, clientV4)
	wantBusy(t, h, "one again", 1, 0)
	h.Close()
	h = open(config)
	wantBusy(t, h, "with the same settings", 1, 0)
	h.Close()
	h = open(hostConfigOn(t, "near"))
	closed(server, peer)
	wantBusy(t, h, "the sockets of a cgroup without processes count", 0, 0)
}

// connectTo opens a connection to an address of the listener.
func connectTo(t testing.TB, l *net.TCPListener, vip,
	client netip.Addr) (local net.Addr, server, peer net.Conn) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0))}
	peer, err := dialer.Dial("tcp", netip.AddrPortFrom(vip, hostPort).String())
	must(t, err)
	server, err = l.Accept()
	must(t, err)
	return peer.LocalAddr(), server, peer
}

// TestBusyAborted: a connection that is reset, or refused by the listener's end, leaves no count
// behind.
func TestBusyAborted(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(t, w)
	l := listenBy(t, hostVIPv6, false)
	_, server, peer := connectTo(t, l, hostVIPv6, clientV6)
	wantBusy(t, h, "open", 0, 1)
	must(t, peer.(*net.TCPConn).SetLinger(0))
	must(t, peer.Close())
	wantBusy(t, h, "reset by the client", 0, 0)
	must(t, server.Close())
	wantBusy(t, h, "closed after the reset", 0, 0)

	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(clientV6, 0))}
	waiting, err := dialer.Dial("tcp", l.Addr().String())
	must(t, err)
	wantBusy(t, h, "not accepted yet", 0, 1)
	must(t, l.Close())
	wantBusy(t, h, "never accepted", 0, 0)
	must(t, waiting.Close())
}

// TestBusyElsewhere: connections of another network namespace, to the same address and port, are
// not this host's, though the sockets are in the same cgroup.
func TestBusyElsewhere(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(t, w)
	l := listenBy(t, hostVIPv6, false)
	_, server, peer := connectTo(t, l, hostVIPv6, clientV6)
	defer server.Close()
	defer peer.Close()
	wantBusy(t, h, "one here", 0, 1)
	t.Run("elsewhere", func(t *testing.T) {
		runtime.LockOSThread()
		must(t, unix.Unshare(unix.CLONE_NEWNET))
		setUp(t, "lo")
		addAddresses(t, hostVIPv6, clientV6)
		other := listenBy(t, hostVIPv6, false)
		_, server, peer := connectTo(t, other, hostVIPv6, clientV6)
		echo(t, server, peer) // so that its state has been counted, if it is
		wantBusy(t, h, "one here, one elsewhere", 0, 1)
		must(t, server.Close())
		must(t, peer.Close())
		wantBusy(t, h, "one here, none elsewhere", 0, 1)
	})
}

// echo sends a byte both ways.
func echo(t testing.TB, a, b net.Conn) {
	t.Helper()
	one := []byte{1}
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		_, err := pair[0].Write(one)
		must(t, err)
		_, err = pair[1].Read(one)
		must(t, err)
	}
}

// TestBusyOfNoService: a connection to a port that no service has is not counted.
func TestBusyOfNoService(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv4, clientV4)
	h := busyHost(t, w)
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp",
		netip.AddrPortFrom(hostVIPv4, 8080).String())
	must(t, err)
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer peer.Close()
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	echo(t, server, peer)
	wantBusy(t, h, "a foreign port", 0, 0)
}

// A service whose load is reported counts that as busy, and not its connections.
func TestReportedLoad(t *testing.T) {
	w := newWorld(t)
	h, err := OpenHost(w.dir, hostConfig(t))
	must(t, err)
	t.Cleanup(h.Close)
	reported := acceptance.Policy{Kind: acceptance.Static, Threshold: 4, Reported: true}
	must(t, h.SetService(ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}, 1, reported))
	must(t, h.maps["busy"].Put(uint32(1), int32(9)))
	must(t, h.Report(1, 3))
	for policy, want := range map[acceptance.Policy]int{reported: 3, {}: 9} {
		if got, err := h.Busy(1, policy); err != nil || got != want {
			t.Errorf("reported is %v: busy %d, %v, want %d", policy.Reported, got, err, want)
		}
	}
}
