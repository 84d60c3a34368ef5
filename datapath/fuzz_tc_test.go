package datapath

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"sextant/datapath/model"
)

// fuzzedPrograms has a target for each entry point of bpf/, by its name.
var fuzzedPrograms = map[string]func(*testing.F){}

// fuzzes says of which programs a target is. A lint rule wants each to have one.
func fuzzes(target func(*testing.F), programs ...string) bool {
	for _, name := range programs {
		fuzzedPrograms[name] = target
	}
	return true
}

// TestFuzzedPrograms: the names are those of the programs that the objects have.
func TestFuzzedPrograms(t *testing.T) {
	var programs []string
	for _, spec := range specs(t) {
		for name := range spec.Programs {
			programs = append(programs, name)
			if fuzzedPrograms[name] == nil {
				t.Errorf("program %s has no fuzz target", name)
			}
		}
	}
	for name := range fuzzedPrograms {
		if !slices.Contains(programs, name) {
			t.Errorf("no object has a program %s, of which a fuzz target is told", name)
		}
	}
}

// Offsets in struct __sk_buff.
const (
	skbData     = 76
	skbDataEnd  = 80
	skbDataMeta = 140
)

// onlyNoted makes a TC program of an object read its note at the start of the frame, and leaves the
// others out: the kernel's test run of TC programs can't put one in front of it. All else is the
// program that runs.
func onlyNoted(t testing.TB, spec *ebpf.CollectionSpec, name string) *ebpf.CollectionSpec {
	t.Helper()
	spec.Programs = map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}
	moved := map[int16]int16{skbDataMeta: skbData, skbData: skbDataEnd}
	seen := map[int16]int{}
	for i := range spec.Programs[name].Instructions {
		ins := &spec.Programs[name].Instructions[i]
		if to, ok := moved[ins.Offset]; ok && ins.OpCode == asm.LoadMemOp(asm.Word) {
			seen[ins.Offset]++
			ins.Offset = to
		}
	}
	if seen[skbDataMeta] != 1 || seen[skbData] != 1 {
		t.Fatalf("%s reads data_meta and data %v times; this test knows one of each", name, seen)
	}
	return spec
}

var _ = fuzzes(FuzzMark, "merge_mark")

// FuzzMark gives what marks packets frames without a note, and with any: the mark is the note's,
// and nothing else changes.
func FuzzMark(f *testing.F) {
	w := newWorld(f)
	merges := newTwoMerges(f, w)
	spec, err := merges.program.spec()
	must(f, err)
	noted, err := merges.program.load(onlyNoted(f, spec, "merge_mark"))
	must(f, err)
	seed(f, 0, steerGenerator(5).Next)
	f.Fuzz(func(t *testing.T, told uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		mark, ok := runMark(t, merges.program.programs["merge_mark"], uint32(told), frame)
		if !ok {
			return // the kernel makes no socket buffer of it: an IP header that is not whole
		}
		if mark != uint32(told) {
			t.Errorf("without a note, mark %#x became %#x\nframe %x", told, mark, frame)
		}
		want := binary.NativeEndian.Uint32(frame)
		if mark, _ := runMark(t, noted["merge_mark"], uint32(told), frame); mark != want {
			t.Errorf("mark %#x, the note is %#x", mark, want)
		}
	})
}

var _ = fuzzes(FuzzCopy, "edge_copy")

// FuzzCopy gives what sends copies frames without a note: none is changed.
func FuzzCopy(f *testing.F) {
	w := newWorld(f)
	config := edgeConfig(f)
	config.Copies = true
	edge, err := OpenEdge(w.dir, config)
	must(f, err)
	f.Cleanup(edge.Close)
	seed(f, 0, steerGenerator(6).Next)
	f.Fuzz(func(t *testing.T, told uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		if mark, ok := runMark(t, edge.copier, uint32(told), frame); ok && mark != uint32(told) {
			t.Errorf("mark %#x became %#x\nframe %x", told, mark, frame)
		}
	})
}

// runMark returns the mark after a run that must leave the frame as it is.
func runMark(t *testing.T, program *ebpf.Program, mark uint32, frame []byte) (uint32, bool) {
	t.Helper()
	context, after := make([]byte, skbSize), make([]byte, skbSize)
	binary.NativeEndian.PutUint32(context[skbMark:], mark)
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256),
		Context: context, ContextOut: after}
	verdict, err := program.Run(&options)
	if err != nil {
		return 0, false
	}
	if verdict != tcUnspec || !bytes.Equal(options.DataOut, frame) {
		t.Errorf("verdict %d\n%x became\n%x", verdict, frame, options.DataOut)
	}
	return binary.NativeEndian.Uint32(after[skbMark:]), true
}

var _ = fuzzes(FuzzDivert, "headend_divert")

// FuzzDivert compares which of the packets that leave go into the loop: those that a rule chooses,
// with the loop's addresses and nothing else changed.
func FuzzDivert(f *testing.F) {
	w := newWorld(f)
	routeBackends(f)
	ends := newTwoHeadends(f, w, Internal)
	seed(f, 0, steerGenerator(6).Next)
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		verdict, after, err := ends.program.divert.Test(frame)
		if err != nil {
			return // as above
		}
		want := frame
		if verdict == tcRedirect {
			want = slices.Concat(ends.model.LoopLink[:], frame[len(ends.model.LoopLink):])
		}
		if verdict != tcRedirect && verdict != tcUnspec || !bytes.Equal(after, want) {
			t.Errorf("verdict %d\n%x became\n%x, want\n%x", verdict, frame, after, want)
		}
		if steered, sure := diverts(ends, w, frame); sure && steered != (verdict == tcRedirect) {
			t.Errorf("verdict %d, a rule chooses it: %v\nframe %x", verdict, steered, frame)
		}
	})
}

// diverts reports whether a rule chooses a packet that leaves. It is not sure of those that the
// head-end would drop before it asks, and of those with extension headers, behind which headend
// looks and headend_divert does not.
func diverts(ends twoHeadends, w *world, frame []byte) (chosen, sure bool) {
	ether := frame[12:]
	if len(ether) > 2+40 && ether[0] == 0x86 && ether[1] == 0xdd {
		switch ether[2+6] { // what is behind the IPv6 header
		case 6, 17, 58:
		default:
			return false, false
		}
	}
	headend := *ends.model // what it numbers is not this one's
	s := headend.Process(uint32(w.near), 0, frame)
	if s.Entry < 0 {
		return false, s.Results[0].Verdict == model.Pass
	}
	return true, s.Results[0].Reason != model.ReasonIPOptions
}

// What may happen to the connections of FuzzSockets.
const (
	openIPv4 = iota
	openIPv6
	clientShuts
	serverShuts
	clientResets
	serverResets
	socketEvents
)

// fuzzedEvents bounds the events of an input.
const fuzzedEvents = 24

// busyConnection is a connection of a service, while it counts.
type busyConnection struct {
	service      int
	server, peer *net.TCPConn
}

var _ = fuzzes(FuzzSockets, "host_sockets")

// FuzzSockets lets connections of two services come and go, and compares how many are busy with how
// many there are whose server has neither closed nor lost them.
func FuzzSockets(f *testing.F) {
	w := newWorld(f)
	addAddresses(f, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(f, w)
	listeners := []*net.TCPListener{listen(f, hostVIPv4), listen(f, hostVIPv6)}
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	for event := range byte(socketEvents) {
		f.Add([]byte{openIPv4, openIPv6, event, event + socketEvents, openIPv6})
	}
	var established [2]uint64
	f.Fuzz(func(t *testing.T, events []byte) {
		defer z.enter(t)()
		var open []busyConnection
		for _, event := range events[:min(len(events), fuzzedEvents)] {
			open = befall(t, listeners, open, event, &established)
			count := busyOf(open)
			wantBusy(t, h, "after an event", count[0], count[1])
		}
		for len(open) > 0 {
			open = befall(t, listeners, open, serverResets, &established)
		}
		wantBusy(t, h, "all reset", 0, 0)
		for i, want := range established {
			signals, err := h.Signals(uint32(i + 1))
			if err != nil || signals.Established != want {
				t.Errorf("service %d: %+v, %v; %d connections came about", i+1, signals, err, want)
			}
		}
	})
}

func busyOf(open []busyConnection) (count [2]int) {
	for _, c := range open {
		count[c.service]++
	}
	return count
}

// befall opens a connection, or does something to one that is open; it returns those that are busy
// then.
func befall(t *testing.T, listeners []*net.TCPListener, open []busyConnection, event byte,
	established *[2]uint64) []busyConnection {
	t.Helper()
	what, which := event%socketEvents, int(event/socketEvents)
	if what <= openIPv6 {
		vip, client := hostVIPv4, clientV4
		if what == openIPv6 {
			vip, client = hostVIPv6, clientV6
		}
		_, server, peer := connectTo(t, listeners[what], vip, client)
		established[what]++
		return append(open, busyConnection{int(what), server.(*net.TCPConn), peer.(*net.TCPConn)})
	}
	if len(open) == 0 {
		return open
	}
	which %= len(open)
	c := open[which]
	switch what {
	case clientShuts:
		_ = c.peer.CloseWrite() // twice is an error, and nothing happens
		return open
	case serverShuts:
		must(t, c.server.CloseWrite())
	case clientResets:
		must(t, c.peer.SetLinger(0))
		must(t, c.peer.Close())
	case serverResets:
		must(t, c.server.SetLinger(0))
		must(t, c.server.Close())
	}
	for _, end := range []*net.TCPConn{c.server, c.peer} {
		_ = end.SetLinger(0) // no ports are left waiting
		t.Cleanup(func() { end.Close() })
	}
	return slices.Delete(open, which, which+1)
}
