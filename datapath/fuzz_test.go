package datapath

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The programs' parsers under mutated frames: each is given to the program and to its Go model,
// which must agree. Both keep what they remember from one frame to the next, so a failure tells the
// frames before it too.

const (
	fuzzSeeds    = 150  // generated frames from which the mutations start; testdata/fuzz has more
	fuzzFrameMax = 3000 // bytes; the kernel's test run takes a page less its headroom
	// frames, after which memories are emptied: the programs' are bounded, the models' are not
	fuzzForget = 4096
	fuzzBefore = 4 // frames that are told of besides the one that failed
)

// fuzzer gives a program one frame after the other, in the world's namespace: each input of a fuzz
// target comes on a thread of its own.
type fuzzer struct {
	*runner
	home, world int // namespaces
	tables      *collection
	counted     uint64
	seen        int
	before      [][]byte
}

func newFuzzer(f *testing.F, w *world, run *runner, tables *collection) *fuzzer {
	f.Helper()
	z := &fuzzer{runner: run, home: mainNamespace(f), world: w.netns, tables: tables}
	z.counted = z.total(f)
	return z
}

// mainNamespace opens the network namespace of the main thread, which is where the test was.
func mainNamespace(f *testing.F) int {
	f.Helper()
	home, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(f, err)
	f.Cleanup(func() { unix.Close(home) })
	return home
}

// enter takes the calling goroutine into the world's namespace until leave is called.
func (z *fuzzer) enter(t *testing.T) (leave func()) {
	t.Helper()
	runtime.LockOSThread()
	must(t, unix.Setns(z.world, unix.CLONE_NEWNET))
	return func() {
		must(t, unix.Setns(z.home, unix.CLONE_NEWNET))
		runtime.UnlockOSThread()
	}
}

// total is how many packets the program has counted, under any outcome and reason.
func (z *fuzzer) total(t testing.TB) (sum uint64) {
	t.Helper()
	for _, name := range []string{"drops", "outcomes"} {
		counts, err := totalsOf(z.tables.maps[name])
		must(t, err)
		for _, n := range counts {
			sum += n
		}
	}
	return sum
}

// give runs the program on a frame, which it must count once.
func (z *fuzzer) give(t *testing.T, frame []byte) (verdict uint32, after []byte) {
	t.Helper()
	verdict, after = z.run(t, frame)
	z.seen++
	z.counted++
	if now := z.total(t); now != z.counted {
		t.Errorf("counted %d times, verdict %d\nframe %x", 1+int(now-z.counted), verdict, frame)
		z.counted = now
	}
	return verdict, after
}

// note keeps a frame to tell of it when a later one fails, and says now whether this one has
// failed.
func (z *fuzzer) note(t *testing.T, frame []byte) {
	t.Helper()
	if t.Failed() {
		for _, b := range z.before {
			t.Logf("before it came %x", b)
		}
	}
	z.before = append(z.before, bytes.Clone(frame))
	if len(z.before) > fuzzBefore {
		z.before = z.before[1:]
	}
}

// isFrame leaves out what the kernel's test run does not take.
func isFrame(frame []byte) bool {
	return len(frame) >= ethernetHeader && len(frame) <= fuzzFrameMax
}

// seed adds generated frames for each of some variants.
func seed(f *testing.F, variants int, next func() []byte) {
	for i := range fuzzSeeds {
		f.Add(uint8(i%max(1, variants)), bytes.Clone(next()))
	}
}

// forget empties tables of a program.
func (c *collection) forget(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		m := c.maps[name]
		if m.Type() == ebpf.Array {
			zeros := make([]byte, int(m.MaxEntries()*m.ValueSize()))
			keys := make([]uint32, m.MaxEntries())
			for i := range keys {
				keys[i] = uint32(i)
			}
			values := make([]uint64, len(zeros)/8)
			_, err := m.BatchUpdate(keys, values, nil)
			must(t, err)
			continue
		}
		var keys [][]byte
		for key, err := m.NextKeyBytes(nil); err == nil &&
			key != nil; key, err = m.NextKeyBytes(key) {
			keys = append(keys, slices.Clone(key))
		}
		for _, key := range keys {
			must(t, m.Delete(key))
		}
	}
}

// fuzzEdges compares edges on given sides of the domain, in all encapsulations.
func fuzzEdges(f *testing.F, sides ...Side) {
	w := newWorld(f)
	routeBackends(f)
	type variant struct {
		twoEdges
		*fuzzer
		pristine model.Edge
	}
	var variants []*variant
	var next []func() []byte
	for _, side := range sides {
		for _, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
			config := edgeConfig(f)
			config.Encapsulation, config.Interfaces[0].Side = encapsulation, side
			edges := newTwoEdges(f, w, config)
			edges.model.SID = func(
				id uint16) netip.Addr { // may be called within an input, where f may not
				sid, _ := config.Block.Carrier(srv6.CSID(id))
				return sid
			}
			z := newFuzzer(f, w, newRunner(edges.program.programs[side], w.near),
				edges.program.collection)
			variants = append(variants, &variant{edges, z, *edges.model})
			next = append(next, edgeGenerator(f, uint64(len(variants)), config).Next)
		}
	}
	at := 0
	seed(f, len(variants), func() []byte { at++; return next[at%len(next)]() })
	f.Fuzz(func(t *testing.T, kind uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		v := variants[int(kind)%len(variants)]
		defer v.enter(t)()
		if v.seen%fuzzForget == fuzzForget-1 {
			v.program.forget(t, "fragments")
			*v.model = v.pristine
		}
		want := v.model.Process(uint32(w.near), frame)
		verdict, after := v.give(t, frame)
		agree(t, frame, verdict, after, want)
		v.note(t, frame)
	})
}

var _ = fuzzes(FuzzEdgeClients, "edge")

// FuzzEdgeClients compares what edges do with what clients send.
func FuzzEdgeClients(f *testing.F) { fuzzEdges(f, External, Mixed) }

// FuzzEdgeDomain compares what edges do with what comes from the SR domain: strays, and what
// routers say.
func FuzzEdgeDomain(f *testing.F) { fuzzEdges(f, Internal, Mixed) }

var _ = fuzzes(FuzzHost, "host")

// FuzzHost compares what a host does, while the kernel holds sockets in each state.
func FuzzHost(f *testing.F) {
	w := newWorld(f)
	routeBackends(f)
	sockets, connections, keep := hostSockets(f, w)
	hosts := newTwoHosts(f, w, sockets)
	z := newFuzzer(f, w, newRunner(hosts.program.programs["host"], w.near),
		hosts.program.collection)
	pristine := *hosts.model
	seed(f, 0, hostGenerator(f, 1, connections, hosts.program.config).NextHost)
	f.Fuzz(func(t *testing.T, told uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		if z.seen%fuzzForget == fuzzForget-1 {
			hosts.program.forget(t, "fragments", "refusals", "quic_flows")
			*hosts.model = pristine
		}
		keep(t)
		frame = bytes.Clone(frame)
		hosts.tell(int(told), uint32(w.near), frame)
		want := hosts.model.Process(uint32(w.near), 0, frame)
		verdict, after := z.give(t, frame)
		agree(t, frame, verdict, after, want)
		z.note(t, frame)
	})
}

var _ = fuzzes(FuzzLeave, "host_leave")

// FuzzLeave compares what a host does with what leaves it.
func FuzzLeave(f *testing.F) {
	w := newWorld(f)
	hosts := newTwoHosts(f, w, nil)
	mss := layers.TCPOption{OptionType: layers.TCPOptionKindMSS, OptionLength: 4,
		OptionData: []byte{0x23, 0x28}}
	for _, answer := range []flow.Tuple{
		{Src: hostVIPv6, Dst: clientV6, SrcPort: hostPort, DstPort: 2000, Protocol: 6},
		{Src: hostVIPv4, Dst: clientV4, SrcPort: hostPort, DstPort: 2000, Protocol: 6},
	} {
		f.Add(tcpFrame(f, answer, &layers.TCP{SYN: true, ACK: true,
			Options: []layers.TCPOption{mss}}))
		f.Add(tcpFrame(f, answer, &layers.TCP{SYN: true, ACK: true, Options: benchSYNOptions}))
		f.Add(tcpFrame(f, answer, &layers.TCP{RST: true}))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if !isFrame(frame) {
			return
		}
		_, after, err := hosts.program.programs["host_leave"].Test(frame)
		if err != nil {
			return // the kernel makes no socket buffer of it: an IP header that is not whole
		}
		if want := hosts.model.Egress(frame, true); !bytes.Equal(after, want) {
			t.Errorf("left as %x, the model says %x\nframe %x", after, want, frame)
		}
	})
}

// FuzzCapture gives an edge that is captured frames: what is told of each must be what arrived, and
// what the model says became of it.
func FuzzCapture(f *testing.F) {
	w := newWorld(f)
	routeBackends(f)
	w.dir = filepath.Join(w.dir, "edge")
	config := edgeConfig(f)
	edges := newTwoEdges(f, w, config)
	edges.model.SID = nil // a carrier needs none
	_, err := edges.program.Commit()
	must(f, err)
	const kept = 256
	capture, err := edges.program.Capture(kept)
	must(f, err)
	f.Cleanup(func() { capture.Close() })
	z := newFuzzer(f, w, newRunner(capture.swaps[0].captures, w.near), edges.program.collection)
	seed(f, 0, edgeGenerator(f, 7, config).Next)
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		want := edges.model.Process(uint32(w.near), frame)
		verdict, after := z.run(t, frame)
		agree(t, frame, verdict, after, want)
		got := nextLike(t, capture, frame[:min(kept, len(frame))])
		if got.Verdict != want.Verdict || got.Length != len(frame) || got.Interface != w.near ||
			got.Taken != want.Taken {
			t.Errorf("captured as %+v, the model says %v %v\nframe %x", got, want.Verdict,
				want.Reason, frame)
		}
		z.note(t, frame)
	})
}

// FuzzCaptured reads what a capturing program could write.
func FuzzCaptured(f *testing.F) {
	raw := make([]byte, unsafe.Offsetof(capture{}.Bytes)+60)
	*(*uint32)(unsafe.Pointer(&raw[unsafe.Offsetof(capture{}.Kept)])) = 60
	f.Add(raw)
	f.Add(raw[:len(raw)-1])
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseCaptured(raw)
		if err == nil && len(got.Frame) > len(raw) {
			t.Errorf("%d bytes of a frame in %d bytes", len(got.Frame), len(raw))
		}
	})
}
