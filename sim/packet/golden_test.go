package packet

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"sextant/te/topology/generate"
)

// golden are what runs of each scheme gave, as hashes of all that they count: what makes the
// simulator faster leaves them as they are. A change of a model changes some; then the test prints
// what they are, and the change says why.
var golden = []uint64{
	0xe3c884c666d67778, 0x907647a51d7fbe71, 0x92bcad4852e8dace, 0xb4372f7888bbb764,
	0x883bedbc11d12736, 0x74d889e1e84756dc, 0x9c7c6af1d9fd1e1a, 0xca19fec78cdfb229,
	0x817595de4acf4043, 0xedc43c7a2337d07, 0x9a6a31ab06fd21a1, 0x78cf357d9ec22be9,
	0x87b668185f746bd9, 0x25f022bd179ff6ce, 0x37af9ab35789fbfe, 0x5aa19dbebd0ec14a,
	0x5bbb48d28b548a59, 0x208dcac650b5daa5, 0xf45b31eaab03a59e, 0x5d390581a44943d8,
	0xbb2b99813c524a76, 0xd60a8e1e495938f4, 0xee3034412dc01203, 0x6d684ec62c10fde2,
	0x1fc00bba9adc68ed,
}

// Short flows over a small fabric with small queues and links that fail, by each scheme, with
// Linux's rules, and with lossless queues; and a part of the row of csg-htsim.
func TestGolden(t *testing.T) {
	g, err := generate.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	var found []uint64
	lossless := len(packetSchemes) + 3
	for i, scheme := range slices.Concat(packetSchemes, []Scheme{ECMP, Spray, REPS, ECMP, DRILL}) {
		c := NetworkConfig{Rate: 1e9, Delay: Microsecond,
			Queue: Queue{Bytes: 12 * 1500, Mark: 4 * 1500, Random: 2 * 1500}}
		if i >= lossless {
			c.Queue.Random = 0
			c.Lossless = &Lossless{XOFF: 8 * 1500, XON: 6 * 1500, Headroom: -1, Frame: 1500}
		}
		n, err := NewNetwork(g, c)
		if err != nil {
			t.Fatal(err)
		}
		transport := DefaultTransport()
		transport.Linux = i >= len(packetSchemes) && i < lossless
		transport.Control = []Control{Reno, Cubic, DCTCP, LIA, OLIA}[i%5]
		transport.ECN = transport.Control == DCTCP
		found = append(found, goldenRun(t, n, transport, scheme, uint64(i)))
	}
	mean, least, s := goodput(t, htsimNetwork(t, 8), Config{Transport: htsimTransport(),
		Paths: Paths{Scheme: Random}, Seed: 1}, 8, Second/10)
	found = append(found, hashOf(mean, least, s.Totals()))
	// Other architectures contract floating-point operations.
	if runtime.GOARCH == "amd64" && !slices.Equal(found, golden) {
		for i := range found {
			if i < len(golden) && found[i] != golden[i] {
				t.Errorf("run %d differs", i)
			}
		}
		t.Errorf("all: %#x", found)
	}
}

func goldenRun(t *testing.T, n *Network, transport Transport, scheme Scheme, seed uint64) uint64 {
	t.Helper()
	var done []Completed
	s := begin(t, Config{Network: n, Transport: transport, Seed: seed,
		Paths: Paths{Scheme: scheme, FlowletGap: 20 * Microsecond, Convergence: Millisecond,
			Probe: 5 * Millisecond, Cutoff: 15 * Microsecond, Resume: 40 * Microsecond,
			Controller: &Controller{Settings: prompt(), Sample: 0.2,
				Pause: 50 * Microsecond, Prompt: true, ReportDelay: 20 * Microsecond,
				ControlDelay: 50 * Microsecond}},
		Done: func(c Completed) { done = append(done, c) }})
	r := rand.New(rand.NewPCG(seed, 9))
	for range 60 {
		src := r.IntN(len(n.Hosts))
		add(t, s, Flow{Src: src, Dst: (src + 1 + r.IntN(len(n.Hosts)-1)) % len(n.Hosts),
			Bytes: 1 + r.Int64N(200_000), Start: Time(r.Int64N(int64(3 * Millisecond))),
			Subflows: 1 + r.IntN(3)})
	}
	for range 3 {
		link, at := r.IntN(n.Graph.Edges()), Time(r.Int64N(int64(3*Millisecond)))
		for _, c := range []Change{{At: at, Link: link},
			{At: at + 10*Millisecond, Link: link, Up: true}} {
			if err := s.Schedule(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Run(5 * Second)
	if len(done) == 0 {
		t.Errorf("scheme %d: no flow ended", scheme)
	}
	all := []any{s.Totals(), done}
	for l := range s.links {
		all = append(all, s.Link(l), s.Pauses(l))
	}
	return hashOf(all...)
}

// hashOf is a number for values.
func hashOf(values ...any) uint64 {
	h := fnv.New64a()
	for _, v := range values {
		fmt.Fprintf(h, "%+v\n", v)
	}
	return h.Sum64()
}
