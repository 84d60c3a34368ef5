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
	stop, result := make(chan struct{}), make(chan pathsTaken)
	go followPaths(e.programs[External], w.near, frame, stop, result)
	for n := 1; n <= changes; n++ {
		set(n)
	}
	close(stop)
	got := <-result
	if got.fault != "" || got.last > 0x1000+changes || got.seen < 10 {
		t.Errorf("packets took %d changes, up to %#x: %s", got.seen, got.last, got.fault)
	}
}

type pathsTaken struct {
	seen  int    // changes
	last  uint16 // what it was marked with
	fault string
}

// followPaths runs a packet through the edge until stop is closed.
func followPaths(program *ebpf.Program, ingress int, frame []byte, stop <-chan struct{},
	result chan<- pathsTaken) {
	var got pathsTaken
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
		mark := binary.BigEndian.Uint16(opts.DataOut[ids:])
		for i := range 3 {
			if binary.BigEndian.Uint16(opts.DataOut[ids+2*i:]) != mark || mark < got.last {
				got.fault = "a packet took parts of two, or one from before"
				return
			}
		}
		if mark > got.last {
			got.seen, got.last = got.seen+1, mark
		}
	}
}
