package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/experiment"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// parallelLinks is how many links lie side by side, as in figure 10 of Detal et al., 2013.
const parallelLinks = 7

// newParallel makes a client, a router with seven links to the next, and a server behind that.
func newParallel(t *testing.T) *fatTree {
	t.Helper()
	needsRoot(t)
	f := &fatTree{t: t, names: map[string]string{}, ns: map[string]*linux.Netns{},
		commands: map[string]*strings.Builder{}, codecs: map[bool]*cflb.Codec{}}
	codec, err := cflb.New(cflb.Defaults(cflb.SourcePort, parallelLinks,
		[cflb.KeyLength]byte{7}))
	must(t, err)
	f.codecs[false], f.codecs[true] = codec, codec
	all := []string{"client", "near", "far", "server"}
	for _, name := range all {
		f.ns[name], f.names[name] = linuxtest.Netns(t)
		must(t, f.ns[name].Do(prepareRouter))
		f.commands[name] = &strings.Builder{}
	}
	connect := func(a, aName, aAddress, b, bName, bAddress string) {
		f.ip(a, "link add %s type veth peer name %s netns %s", aName, bName, f.names[b])
		f.ip(a, "addr add %s dev %s", aAddress, aName)
		f.ip(a, "link set %s up", aName)
		f.ip(b, "addr add %s dev %s", bAddress, bName)
		f.ip(b, "link set %s up", bName)
	}
	connect("client", "c0", "10.1.0.1/24", "near", "c1", "10.1.0.254/24")
	connect("far", "s0", "10.2.0.254/24", "server", "s1", "10.2.0.1/24")
	hops := ""
	for i := range parallelLinks {
		connect("near", fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.%d.0/31", i), "far",
			fmt.Sprintf("d%d", i), fmt.Sprintf("10.0.%d.1/31", i))
		hops += fmt.Sprintf(" nexthop via 10.0.%d.1 dev u%d", i, i)
	}
	f.run("client", "near", "far", "server")
	f.ip("client", "route add default via 10.1.0.254")
	f.ip("near", "route add 10.2.0.0/24%s", hops)
	f.ip("far", "route add 10.1.0.0/24 via 10.0.0.0")
	f.ip("server", "route add default via 10.2.0.254")
	f.ip("server", "mptcp limits set subflows 8 add_addr_accepted 8")
	f.run(all...)
	must(t, f.ns["near"].Do(f.controlParallel))
	return f
}

func (f *fatTree) controlParallel() error {
	table := model.CFLBTable{Groups: [][]model.CFLBNextHop{nil},
		Routes: map[netip.Prefix]int{netip.MustParsePrefix("10.2.0.0/24"): 0}}
	hashes := model.CFLBKernelHashes(slices.Repeat([]uint32{1}, parallelLinks))
	for i, hash := range hashes {
		link, err := net.InterfaceByName(fmt.Sprintf("u%d", i))
		if err != nil {
			return err
		}
		table.Groups[0] = append(table.Groups[0], model.CFLBNextHop{Weight: 1, KernelHash: hash,
			Interface: uint32(link.Index)})
	}
	return f.open(datapath.CFLBConfig{IPv4: f.codecs[false], IPv6: f.codecs[true], Router: 1,
		Kernel: true, Interfaces: []datapath.CFLBInterface{{Name: "c1"}}}, table)
}

// A connection of MPTCP uses all seven links, with one subflow on each; one of the kernel's own
// path manager keeps its one. A subflow whose packets are lost is ended.
func TestCFLBSubflows(t *testing.T) {
	f := newParallel(t)
	program := buildSextant(t)
	for _, port := range []uint16{5000, 5001} {
		f.discard(port)
	}
	f.manageSubflows(program, "--next-hops", "7", "--fields", "source-port", "--radix", "8",
		"--key", treeKey)
	if links, sockets := f.transfer(0, func(links, _ int) bool { return links > 0 }); links != 1 ||
		sockets != 1 {
		t.Errorf("the kernel's path manager: %d links, %d subflows, want 1 and 1", links, sockets)
	}
	if links, sockets := f.transfer(1, func(links, _ int) bool {
		return links == parallelLinks
	}); links != parallelLinks || sockets > parallelLinks+1 {
		t.Errorf("%d links, %d subflows, want 7 links by 7 or 8 subflows", links, sockets)
	}
	f.endsDeadSubflow()
}

// endsDeadSubflow loses all that the near router sends by two links, without a word, while a
// connection uses all: a subflow there is ended, and the others go on. The connection's first
// subflow, which stays, is on one of the two at most.
func (f *fatTree) endsDeadSubflow() {
	f.t.Helper()
	var before []uint16
	f.transfer(1, func(links, _ int) bool {
		now := f.localPorts(5001)
		switch {
		case before != nil:
			return slices.ContainsFunc(before, func(port uint16) bool {
				return !slices.Contains(now, port)
			})
		case links == parallelLinks:
			before = now
			f.failLinks("replace")
		}
		return false
	})
	f.failLinks("del")
}

// failLinks loses all that the near router sends by links 3 and 4 ("replace"), or no more ("del").
func (f *fatTree) failLinks(how string) {
	f.t.Helper()
	for _, link := range []int{3, 4} {
		f.ip("near", "neigh %s 10.0.%d.1 lladdr 02:00:00:00:00:99 nud permanent dev u%d", how,
			link, link)
	}
	f.run("near")
}

// localPorts are those of the client's sockets that are connected to a port.
func (f *fatTree) localPorts(remote uint16) (list []uint16) {
	f.t.Helper()
	must(f.t, f.ns["client"].Do(func() error {
		sockets, err := linux.TCPSockets()
		for ends := range sockets {
			if ends.Remote.Port() == remote {
				list = append(list, ends.Local.Port())
			}
		}
		return err
	}))
	return list
}

// manageSubflows runs "path mptcp" at the client until the test ends. It has begun then.
func (f *fatTree) manageSubflows(program string, args ...string) {
	f.t.Helper()
	command := exec.Command(program, append([]string{"path", "mptcp", "--after", "100000"},
		args...)...)
	reader, writer, err := os.Pipe()
	must(f.t, err)
	f.t.Cleanup(func() { reader.Close() })
	command.Stderr = writer
	must(f.t, linux.Start(command, f.ns["client"], nil))
	writer.Close()
	f.t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			f.t.Errorf("path mptcp: %v", err)
		}
	})
	const begins = "path mptcp: connections get subflows"
	begun := make([]byte, 64)
	if n, err := reader.Read(begun); err != nil || !strings.Contains(string(begun[:n]), begins) {
		f.t.Fatalf("path mptcp says %q, %v", begun[:n], err)
	}
	go func() { _, _ = io.Copy(os.Stderr, reader) }()
}

// discard serves connections to a port at the server, and reads what they send.
func (f *fatTree) discard(port uint16) {
	var listener net.Listener
	must(f.t, f.ns["server"].Do(func() (err error) {
		config := net.ListenConfig{}
		config.SetMultipathTCP(true)
		listener, err = config.Listen(context.Background(), "tcp4",
			fmt.Sprintf("10.2.0.1:%d", port))
		return err
	}))
	f.t.Cleanup(func() { listener.Close() })
	go discardAll(listener)
}

// discardAll reads what comes on the connections of a listener, until it is closed.
func discardAll(listener net.Listener) {
	experiment.Accept(listener, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
}

// transfer sends by a connection with the path manager of this number, until links and subflows
// are as wanted. A link counts once it has carried half a megabyte.
func (f *fatTree) transfer(manager int, enough func(links, subflows int) bool) (links,
	subflows int) {
	f.t.Helper()
	before, port := f.octets(), uint16(5000+manager)
	var connection net.Conn
	must(f.t, f.ns["client"].Do(func() error {
		if err := linux.WriteSysctl("net.mptcp.pm_type", strconv.Itoa(manager)); err != nil {
			return err
		}
		dialer := net.Dialer{Timeout: 20 * time.Second}
		dialer.SetMultipathTCP(true)
		var err error
		connection, err = dialer.Dial("tcp4", fmt.Sprintf("10.2.0.1:%d", port))
		return err
	}))
	defer connection.Close()
	go func() {
		chunk := make([]byte, 1<<16)
		for {
			if _, err := connection.Write(chunk); err != nil {
				return
			}
		}
	}()
	f.await("links carry data", func() bool {
		links, subflows = f.busyLinks(before), len(f.localPorts(port))
		return enough(links, subflows)
	})
	return links, subflows
}

// busyLinks is how many links have carried half a megabyte since octets were read.
func (f *fatTree) busyLinks(before map[string]int) (links int) {
	f.t.Helper()
	now := f.octets()
	for i := range parallelLinks {
		if at := fmt.Sprintf("far d%d", i); now[at]-before[at] > 1<<19 {
			links++
		}
	}
	return links
}
