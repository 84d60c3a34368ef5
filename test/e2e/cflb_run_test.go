package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// steeredPackets is how many connections a test opens for each path.
const steeredPackets = 8

// steeredBytes is what each connection of TCP carries; what goes by a link without that is
// acknowledgements at most.
const (
	steeredBytes = 1 << 17
	strayBytes   = steeredPackets * steeredBytes / 8
)

// runConnect is the application of TestCFLBPathRun: it connects sockets without knowing of paths,
// and sends a packet by each of UDP, more by each of TCP.
func runConnect(_ context.Context, words []string) error {
	network, to := words[0], words[1]
	for range steeredPackets {
		socket, err := net.Dial(network, to)
		if err != nil {
			return err
		}
		defer socket.Close()
		payload := make([]byte, treePayload4)
		switch network {
		case "udp6":
			payload = payload[:treePayload4-20]
		case "tcp4", "tcp6":
			payload = make([]byte, steeredBytes)
		}
		if _, err := socket.Write(payload); err != nil {
			return err
		}
		if end, ok := socket.(*net.TCPConn); ok { // until all has arrived
			if err := end.CloseWrite(); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// An application that knows nothing of paths takes each of the four between two pods, by its source
// ports or by the flow labels of its packets, with UDP and TCP over IPv4 and IPv6: what it sends
// comes in at the interfaces of its path, and nowhere else.
func TestCFLBPathRun(t *testing.T) {
	t.Parallel()
	for name, xdp := range map[string]bool{"kernel": false, "XDP": true} {
		t.Run(name, func(t *testing.T) {
			f := newFatTree(t, cflb.SourcePort, cflb.FlowLabel, xdp)
			f.host(0, "hosts")
			program := buildSextant(t)
			steer := func(p treePath, network string, fields cflb.Fields, to netip.Addr) {
				t.Helper()
				command := exec.Command(program, "path", "run", "--fields", fields.String(),
					"--radix", "2", "--key", treeKey,
					"--via", fmt.Sprintf("%d,%d", p.aggregation, p.core), "--",
					os.Args[0], "connect", network, netip.AddrPortFrom(to, 4789).String())
				output := &strings.Builder{}
				command.Stdout, command.Stderr = output, output
				must(t, linux.Start(command, f.ns["hosts"], nil))
				if err := command.Wait(); err != nil || output.Len() > 0 {
					t.Fatalf("path run: %v\n%s", err, output)
				}
			}
			for i := range 4 {
				p := treePath{0, 15, i % 2, i / 2}
				for of6, fields := range map[bool]cflb.Fields{false: cflb.SourcePort,
					true: cflb.FlowLabel} {
					network, to := "udp4", hostAddress(15)
					if of6 {
						network, to = "udp6", hostAddress6(15)
					}
					f.checkBatch(slices.Repeat([]treePath{p}, steeredPackets), of6, func() {
						steer(p, network, fields, to)
					})
				}
			}
			f.checkChoices(2 * 2 * 4 * steeredPackets)
			f.moveHost(15)
			f.discardAt("host15", netip.AddrPortFrom(hostAddress(15), 4789),
				netip.AddrPortFrom(hostAddress6(15), 4789))
			for i := range 4 {
				p := treePath{0, 15, i % 2, i / 2}
				f.checkBytes(p, func() {
					steer(p, "tcp4", cflb.SourcePort, hostAddress(15))
				})
				f.checkBytes(p, func() {
					steer(p, "tcp6", cflb.FlowLabel, hostAddress6(15))
				})
			}
		})
	}
}

// host makes a host one with addresses and routes, in a namespace.
func (f *fatTree) host(number int, where string) {
	name := fmt.Sprintf("h%d", number)
	f.ip(where, "link set lo up")
	f.ip(where, "link set %s up", name)
	f.ip(where, "addr add %s/24 dev %s", hostAddress(number), name)
	f.ip(where, "addr add %s/48 dev %s nodad", hostAddress6(number), name)
	for _, gateway := range []string{fmt.Sprintf("10.200.%d.254", number),
		fmt.Sprintf("fd00:200:%x::fe", number)} {
		f.ip(where, "route add default via %s", gateway)
		f.ip(where, "neigh add %s lladdr %s dev %s nud permanent", gateway, macOf(3, number), name)
	}
	f.run(where)
	must(f.t, f.ns[where].Do(func() error {
		return errors.Join(linux.WriteSysctl("net.ipv6.conf.all.forwarding", "0"),
			linux.SetOffload(name, linux.TxChecksum, false)) // XDP loses what the device owes
	}))
}

// moveHost moves a host to a namespace of its own.
func (f *fatTree) moveHost(number int) {
	where := fmt.Sprintf("host%d", number)
	f.ns[where], f.names[where] = linuxtest.Netns(f.t)
	f.commands[where] = &strings.Builder{}
	f.ip("hosts", "link set h%d netns %s", number, f.names[where])
	f.run("hosts")
	f.host(number, where)
}

// discardAt serves connections of TCP: it reads what they send.
func (f *fatTree) discardAt(where string, ends ...netip.AddrPort) {
	f.t.Helper()
	for _, end := range ends {
		must(f.t, f.ns[where].Do(func() error {
			listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(end))
			if err != nil {
				return err
			}
			f.t.Cleanup(func() { listener.Close() })
			go discardAll(listener)
			return nil
		}))
	}
}

// checkBytes wants what is sent by TCP to come in at the interfaces of the path, and no more than
// acknowledgements elsewhere.
func (f *fatTree) checkBytes(p treePath, send func()) {
	f.t.Helper()
	before := f.octets()
	send()
	arrivals, _ := p.arrivals()
	for at, octets := range f.octets() {
		on := slices.Contains(arrivals, at) || at == "host15 h15"
		if n := octets - before[at]; on && n < steeredPackets*steeredBytes ||
			!on && n > strayBytes {
			f.t.Errorf("path %+v: %d octets came in at %s", p, n, at)
		}
	}
}
