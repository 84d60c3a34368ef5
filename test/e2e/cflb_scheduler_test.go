package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/controller"
	"sextant/packet/cflb"
)

// schedule runs a controller of a network, whose file has these parts, until the test ends.
func schedule(t *testing.T, program, edges, file string) (*controller.Client, string) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "controller.sock")
	for name, text := range map[string]string{"net.edges": edges, "key": treeKey,
		"controller.yaml": fmt.Sprintf("topology: %s\napi: {socket: %s}\n", filepath.Join(dir,
			"net.edges"), socket) + strings.ReplaceAll(file, "KEY", filepath.Join(dir, "key"))} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	command := exec.Command(program, "controller", "-f", filepath.Join(dir, "controller.yaml"))
	command.Stderr = os.Stderr
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			t.Errorf("controller: %v", err)
		}
	})
	client := controller.NewClient(socket)
	(&fatTree{t: t}).await("the controller answers", func() bool {
		_, err := client.Status(t.Context())
		return err == nil
	})
	return client, socket
}

// treeFile is the fat tree as the controller's file has it.
func treeFile(best string) (edges, file string) {
	var links, hosts strings.Builder
	eachLink(func(lower, upper string, number int) {
		edges += fmt.Sprintf("%s %s 1\n", lower, upper)
		gateways := linkAddresses(number, 1, "", "")
		fmt.Fprintf(&links, "- {from: %s, to: %s, gateways: [%s, \"%s\"]}\n", lower, upper,
			gateways[0], gateways[1])
	})
	for host := range 16 {
		for _, prefix := range hostPrefixes(host) {
			fmt.Fprintf(&hosts, "  - {prefix: \"%s\", router: %s}\n", prefix, edgeName(host/2))
		}
	}
	return edges, "links:\n" + links.String() + "cflb:\n  keyFile: KEY\n  best: " + best +
		"\n  ipv4: {fields: source-port, radix: 2}\n" +
		"  ipv6: {fields: flow-label, radix: 2}\n  hosts:\n" + hosts.String()
}

// A permutation of the hosts of a fat tree, placed by the controller by coloring: with the ports
// and flow labels that it answers with, each link between switches carries the packets of one flow
// at most, by its counters.
func TestCFLBScheduler(t *testing.T) {
	f := newFatTree(t, cflb.SourcePort, cflb.FlowLabel, false)
	edges, file := treeFile("coloring")
	client, _ := schedule(t, buildSextant(t), edges, file)
	rng := rand.New(rand.NewPCG(4, 0))
	for of6, address := range map[bool]func(int) netip.Addr{false: hostAddress,
		true: hostAddress6} {
		known, sent := map[string]controller.Elephant{}, 0
		to := rng.Perm(16)
		for host := range to { // one after the other, so that some move
			out, err := client.Place(t.Context(), []controller.Placement{{
				Name: fmt.Sprint(of6, host), Flow: api.Flow{Protocol: "udp",
					Source:      netip.AddrPortFrom(address(host), 0),
					Destination: netip.AddrPortFrom(address(to[host]), 4789)}}})
			must(t, err)
			for _, e := range append(out.Items, out.Moved...) {
				known[e.Name] = e
			}
		}
		before := f.octets()
		for host := range to {
			e := known[fmt.Sprint(of6, host)]
			p := cflb.Packet{Src: address(host), Dst: address(to[host]), HopLimit: 64,
				Protocol: unix.IPPROTO_UDP, HasPorts: true, SrcPort: e.Flow.Source.Port(),
				DstPort: 4789}
			if e.FlowLabel != nil {
				p.FlowLabel = *e.FlowLabel
			}
			if host == to[host] {
				continue
			}
			for range steeredPackets {
				f.send(p, host)
			}
			sent += (len(e.Path) + 1) * steeredPackets // links to and from hosts, too
		}
		for at, n := range f.arrivedSince(before, sent) {
			if n > steeredPackets {
				t.Errorf("IPv6 %v: %d packets of %d came in at %s: of more than one flow", of6, n,
					steeredPackets, at)
			}
			sent -= n
		}
		if sent != 0 {
			t.Errorf("IPv6 %v: %d packets are missing", of6, sent)
		}
		var names []string
		for name := range known {
			names = append(names, name)
		}
		must(t, client.Release(t.Context(), names...))
	}
}

// scheduleParallel runs a controller of parallel links.
func scheduleParallel(t *testing.T, program string) (*controller.Client, string) {
	edges, links := "", ""
	for i := range parallelLinks {
		edges += "near far 1\n"
		links += fmt.Sprintf("- {from: near, to: far, gateways: [10.0.%d.1]}\n", i)
	}
	return schedule(t, program, edges, "links:\n"+links+"cflb:\n  keyFile: KEY\n"+
		"  ipv4: {fields: source-port, radix: 8}\n  hosts: [{prefix: 10.1.0.0/24, router: near}, "+
		"{prefix: 10.2.0.0/24, router: far}]\n")
}

// The path manager asks the controller for ports: seven subflows are on seven links. When their
// connection ends, the controller is told.
func TestCFLBScheduledSubflows(t *testing.T) {
	f := newParallel(t)
	program := buildSextant(t)
	f.discard(5001)
	client, socket := scheduleParallel(t, program)
	f.manageSubflows(program, "--subflows", "7", "--controller", socket)
	if links, sockets := f.transfer(1, func(links, _ int) bool {
		return links == parallelLinks
	}); links != parallelLinks || sockets > parallelLinks+1 {
		t.Errorf("%d links, %d subflows, want 7 links by 7 subflows and the first one", links,
			sockets)
	}
	f.await("the controller is told of the end", func() bool {
		list, err := client.Elephants(t.Context())
		must(t, err)
		return len(list) == 0
	})
}

// pythonPlaces has a flow placed, asked for again by its port, and released.
const pythonPlaces = `
import sys
from sextant import APIError, Controller

controller = Controller(sys.argv[1])
flow = {"source": "10.1.0.9:0", "destination": "10.2.0.9:443", "protocol": "tcp"}
print(len(controller.links()), [len(s["path"]) for s in controller.best(flow, 3)])
placed = controller.place("a", flow)
print(placed["path"], [e["name"] for e in controller.elephants()], controller.status()["elephants"])
steered = controller.ports(flow, placed["path"])
recovered = controller.recover(steered["flow"])
print(recovered["path"], recovered["choices"][0]["how"])
controller.release("a")
print(list(controller.elephants()))
try:
    controller.ports(flow, ["near", "nowhere"])
except APIError as error:
    print(error.status, error.code)
`

// The Python package of this tree asks a controller for all that its client knows.
func TestCFLBPythonClient(t *testing.T) {
	needsRoot(t)
	_, socket := schedule(t, buildSextant(t), "near far 1\nnear far 1\n", "links:\n"+
		"- {from: near, to: far, gateways: [10.0.0.1]}\n"+
		"- {from: near, to: far, gateways: [10.0.1.1]}\ncflb:\n  keyFile: KEY\n"+
		"  ipv4: {fields: source-port, radix: 8}\n  hosts: [{prefix: 10.1.0.0/24, router: near}, "+
		"{prefix: 10.2.0.0/24, router: far}]\n")
	folder, err := filepath.Abs("../../python")
	must(t, err)
	python := exec.Command("python3", "-c", pythonPlaces, socket)
	python.Env = append(os.Environ(), "PYTHONPATH="+folder)
	python.Stderr = os.Stderr
	got, err := python.Output()
	must(t, err)
	const want = "4 [2, 2, 2]\n['near', 'far'] ['a'] 1\n['near', 'far'] controlled\n[]\n" +
		"404 notFound\n"
	if string(got) != want {
		t.Errorf("the Python client printed %q, not %q", got, want)
	}
}
