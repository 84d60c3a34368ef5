package datapath

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/cilium/ebpf"
)

// BenchmarkForwarding prints how many packets pass a machine per second, from a sender on one side
// to a receiver on the other, by program and by the kernel's own means. Method and figures:
// docs/results/forwarding.md.
func BenchmarkForwarding(b *testing.B) {
	must(b, checkBench(*benchPasses, *benchRepeat, *benchOnly, *benchJSON))
	var nics []string
	if *forwardingNICs != "" {
		nics = strings.Split(*forwardingNICs, ",")
	}
	f := newForwarding(b, nics)
	devices := f.chosen(b)
	if len(nics) == 0 {
		oneCPU(b)
	}
	for _, d := range devices { // neighbours, routes, connections of IPVS and flows become known
		f.pass(b, d, max(d.frame.flows, portsPerClient))
	}
	costs, lost := make([]rowCosts, len(devices)), make([]losses, len(devices))
	for pass := 0; pass < benchPassesMost() && !enough(costs); pass++ {
		for i, d := range devices {
			costs[i].add(f.measure(b, d, &lost[i]), nil)
		}
	}
	results := forwardingResults(devices, costs, lost)
	printForwarding(results)
	if !f.hasIPVS(b) {
		fmt.Println("no rows of IPVS: this kernel has none, or there is no ipvsadm")
	}
	writeResults(b, results)
}

// chosen are the devices that -rows names, behind the one that all are compared with.
func (f *forwarding) chosen(t testing.TB) []device {
	t.Helper()
	only, err := regexp.Compile(*benchOnly)
	must(t, err)
	all := f.devices(t)
	return append(all[:1:1], slices.DeleteFunc(all[1:], func(d device) bool {
		return !only.MatchString(d.name)
	})...)
}

// losses are the packets of a device that were sent and never arrived.
type losses struct {
	Sent uint64 `json:"sent"`
	Lost uint64 `json:"lost"`
}

// measure lets packets pass a device, between two runs with the least that forwards at all.
func (f *forwarding) measure(t testing.TB, d device, lost *losses) cost {
	t.Helper()
	packets := max(*benchRepeat, d.frame.flows)
	before, _ := f.pass(t, f.least(d), packets)
	gross, arrived := f.pass(t, d, packets)
	after, _ := f.pass(t, f.least(d), packets)
	lost.Sent += uint64(packets)
	lost.Lost += uint64(packets) - arrived
	return cost{Before: before, Gross: gross, After: after}
}

// pass sends packets through a device, and returns what one that arrived took of processors, in ns,
// and how many did. What arrives must be as the device should have forwarded it.
func (f *forwarding) pass(t testing.TB, d device, packets int) (ns float64, right uint64) {
	t.Helper()
	f.enter(t, d)
	defer f.leave(t, d)
	earlier := f.arrived(t)
	start := f.now(t)
	f.send(t, d.frame, packets)
	now := f.settled(t, earlier, uint64(packets))
	took := f.now(t) - start
	right = now.Right - earlier.Right
	wrong := now.Packets - earlier.Packets - right
	if right < uint64(packets)/2 || wrong > uint64(packets)/1000+strayFrames {
		t.Fatalf("%s: of %d packets %d arrived as they should, and %d others", d.name, packets,
			right, wrong)
	}
	return took / float64(right), right
}

// strayFrames are those that a kernel sends of its own accord while a pass lasts, at most.
const strayFrames = 16

// forwardingResult is a line of the table.
type forwardingResult struct {
	Name      string `json:"name"`
	Passes    int    `json:"passes"`
	Disturbed int    `json:"disturbed"` // passes that do not count
	losses
	PerSecond    spread `json:"packetsPerSecond"` // of one processor
	Gross        spread `json:"grossNs"`
	Net          spread `json:"netNs"`        // less what the least takes
	ToForwarding number `json:"netToForward"` // to the kernel's forwarding in the same pass
}

func forwardingResults(devices []device, costs []rowCosts, lost []losses) []forwardingResult {
	results := make([]forwardingResult, len(devices))
	for i, d := range devices {
		all := costs[i].result(d.name, &costs[0])
		results[i] = forwardingResult{
			Name: d.name, Passes: all.Passes, Disturbed: all.Disturbed, losses: lost[i],
			PerSecond: spreadOf(costs[i].each(func(pass int) float64 {
				return 1e9 / costs[i].this[pass].Gross
			})),
			Gross: all.Gross, Net: all.Net, ToForwarding: all.NetToBare,
		}
	}
	return results
}

func printForwarding(results []forwardingResult) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\none processor\tpackets/s\tns each\tmiddle half\tnet of the least\t"+
		"middle half\tto the kernel's\tlost\tdisturbed\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.0f\t%.1f\t%.1f-%.1f\t%.1f\t%.1f-%.1f\t%.2f\t%d of %d\t"+
			"%d of %d\t\n", r.Name, r.PerSecond.Median, r.Gross.Median, r.Gross.Quarter,
			r.Gross.ThreeQuarters, r.Net.Median, r.Net.Quarter, r.Net.ThreeQuarters,
			r.ToForwarding, r.Lost, r.Sent, r.Disturbed, r.Passes)
	}
	table.Flush()
}

// device is a way to forward, in the machine under test.
type device struct {
	name    string
	program *ebpf.Program // at the interface that faces the sender; nil: the kernel alone
	gro     bool          // the kernel may join packets there
	frame   benchFrame
	begin   string // commands of ip that make the kernel forward so
	end     string // and those that undo them
	balance string // rules that ipvsadm restores
	arrives arrivalForm
	want    func(t testing.TB, sent, got []byte) // compares a frame with what should become of it
}

// arrivalForm is struct arrival of bpf/bench_forwarding.c: how a frame arrives.
type arrivalForm struct {
	Destination [16]byte
	At          uint32
	Length      uint32
	Protocol    uint8
	Keeps       uint8
	_           [3]uint16
}

// arrivalOf is how a frame arrives with so many octets around it, whose first header names a
// protocol.
func arrivalOf(frame benchFrame, around int, protocol uint8, destination netip.Addr) arrivalForm {
	inner := 0
	if protocol == protocolIPv6 {
		inner = ipv6Header
	}
	return arrivalForm{
		Destination: destination.As16(), Protocol: protocol,
		At:     uint32(ethernetHeader + inner + 24),
		Length: uint32(len(frame.octets) + around),
	}
}

// The protocols in the first header of a frame that arrives.
const (
	protocolTCP  = 6
	protocolIPv6 = 41
)
