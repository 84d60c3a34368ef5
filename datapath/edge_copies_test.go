package datapath

import (
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
)

// TestEdgeCountsCopies: a packet goes over two paths, and is counted so, if there is room for the
// note of the second one in front of it; else it takes the first alone, and is not counted.
func TestEdgeCountsCopies(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier, withPaths, func(c *EdgeConfig) { c.Copies = true })
	for _, id := range []uint16{0xa1, 0xa2} {
		must(t, e.SetSID(id, packettest.SID(id)))
	}
	must(t, e.SetPaths(0, map[uint16][][]uint16{9: {{0xa1}, {0xa2}}}))
	e.SetCopies(0, Copies{All: true})
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0, tableBuckets))
	serveAll(t, e, 1, 9)
	edge := w.edgeSubject(e, External)
	frame := packettest.FromClient().Frame(t, packettest.Web4("A").Bytes(t))
	verdict, noted := edge.run(t, frame)
	if counts := edge.counts(t); verdict != xdpPass || counts["copied"] != 1 ||
		len(noted) != len(frame)+16+ipv6Header {
		t.Errorf("verdict %d, %d octets of %d, %d copied", verdict, len(noted), len(frame),
			counts["copied"])
	}
	alone, kept := runBehind(t, edge, w.near, frame)
	if counts := edge.counts(t); counts["copied"] != 1 ||
		!slices.Equal(alone[kept:], noted[16:]) {
		t.Errorf("without room for a note the packet becomes %x, want %x; %d copied", alone[kept:],
			noted[16:], counts["copied"]-1)
	}
}

// runBehind runs the program on a frame that has as much metadata in front of it as the kernel has
// room for beside the outer header, and returns what it leaves with how much that was. Before Linux
// 6.7 metadata have 32 octets at most.
func runBehind(t *testing.T, s subject, ingress int, frame []byte) (after []byte, kept int) {
	t.Helper()
	for _, kept := range []int{176, 32} {
		data := append(make([]byte, kept), frame...)
		options := ebpf.RunOptions{Data: data, DataOut: make([]byte, 1<<12), Context: xdpContext{
			Data: uint32(kept), DataEnd: uint32(len(data)), Ingress: uint32(ingress)}}
		verdict, err := s.program.Run(&options)
		if errors.Is(err, unix.EINVAL) {
			continue
		}
		must(t, err)
		if verdict != xdpPass {
			t.Fatalf("verdict %d", verdict)
		}
		return options.DataOut, kept
	}
	t.Fatal("the kernel takes no metadata in test runs")
	return nil, 0
}
