package datapath

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/packettest"
)

// TestPathsChangeAtOnce: while the paths of a service change again and again, each packet takes
// those of one change, and never those of an earlier one than the packet before. The table is so
// small that places are used again at each change.
func TestPathsChangeAtOnce(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier, withPaths)
	serveAll(t, e, 1, 1)
	const changes, backends = 200, 200
	if room := len(e.paths.array) / 2; 3*backends <= room {
		t.Fatalf("%d of %d places are used again", backends, room)
	}
	set := func(n int) {
		t.Helper()
		paths, mark := map[uint16][][]uint16{}, uint16(0x1000+n)
		for id := range uint16(backends) {
			paths[1+id] = [][]uint16{{mark, mark, mark}}
		}
		must(t, e.SetPaths(0, paths))
		must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0,
			tableBuckets))
	}
	set(0)
	frame := packettest.FromClient().Frame(t, packettest.Web4("A").Bytes(t))
	stop, result := make(chan struct{}), make(chan marksTaken)
	same := func(id uint16) uint16 { return id }
	go followMarks(e.programs[External], w.near, frame, same, stop, result)
	for n := 1; n <= changes; n++ {
		set(n)
	}
	close(stop)
	got := <-result
	if got.fault != "" || got.last > 0x1000+changes || got.seen < 10 {
		t.Errorf("packets took %d changes, up to %#x: %s", got.seen, got.last, got.fault)
	}
}

// Chains that change under packets, of small tables, whose places are used again at once, and of
// large ones: no packet meets parts of two.
func TestChainsChangeAtOnce(t *testing.T) {
	const changes = 60
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	frame := packettest.FromClient().Frame(t, packettest.Web4("A").Bytes(t))
	for _, buckets := range []int{testBuckets, largeTable} {
		must(t, e.DeleteService(edgeWeb, false))
		must(t, e.DeleteChains(0))
		set := func(n int) {
			t.Helper()
			first := uint16(4 * (1 + n))
			must(t, e.SetChains(0, testPool(t, buckets, 3, first, first+1, first+2)))
		}
		set(0)
		must(t, e.SetService(edgeWeb, 0, buckets))
		stop, result := make(chan struct{}), make(chan marksTaken)
		go followMarks(e.programs[External], w.near, frame,
			func(id uint16) uint16 { return id / 4 }, stop, result)
		for n := 1; n <= changes; n++ {
			set(n)
		}
		close(stop)
		got := <-result
		if got.fault != "" || got.last > 1+changes || got.seen < 10 {
			t.Errorf("%d buckets: packets met %d changes, up to %d: %s", buckets, got.seen,
				got.last, got.fault)
		}
	}
}

var edgeWeb = ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}

type marksTaken struct {
	seen  int    // changes
	last  uint16 // what it was marked with
	fault string
}

// followMarks runs a packet through the edge until stop is closed: of three ids in its carrier, all
// have one mark, and none is from before another.
func followMarks(program *ebpf.Program, ingress int, frame []byte, markOf func(id uint16) uint16,
	stop <-chan struct{}, result chan<- marksTaken) {
	var got marksTaken
	defer func() { result <- got }()
	out := make([]byte, 1<<12)
	for {
		select {
		case <-stop:
			return
		default:
		}
		opts := ebpf.RunOptions{Data: frame, DataOut: out,
			Context: xdpContext{DataEnd: uint32(len(frame)), Ingress: uint32(ingress)}}
		if _, err := program.Run(&opts); err != nil {
			got.fault = err.Error()
			return
		}
		const ids = 14 + 24 + 4 // behind the block of the outer destination
		mark := markOf(binary.BigEndian.Uint16(opts.DataOut[ids:]))
		for i := range 3 {
			id := binary.BigEndian.Uint16(opts.DataOut[ids+2*i:])
			if markOf(id) != mark || mark < got.last {
				got.fault = "a packet took parts of two, or one from before"
				return
			}
		}
		if mark > got.last {
			got.seen, got.last = got.seen+1, mark
		}
	}
}
