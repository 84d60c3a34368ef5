package datapath

import (
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-suffix _test bench ../bpf/bench.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3

// benchFrame is what the driver gives the program under test: one frame, from as many flows as
// wanted.
type benchFrame struct {
	octets []byte
	source int // offset of the last four octets of the client's address
	ports  int // offset of the client's port
	flows  int
	order  bool // one after the other, as sequence numbers are
}

// driverSettings is struct driver of bpf/bench.c.
type driverSettings struct {
	Words  [30]uint64
	L2     [16]byte // Ethernet header, padded
	Count  uint32
	Source uint32
	Ports  uint32
	Flows  uint32
	Stride uint32
	Flow   uint32
}

// goldenRatio spreads the visits: its multiples fall evenly and in no order that a cache could
// foresee.
const goldenRatio = 0.6180339887

func (f benchFrame) settings() driverSettings {
	s := driverSettings{
		Count:  uint32(len(f.octets)-ethernetHeader) / 8,
		Source: uint32(f.source-ethernetHeader) / 8,
		Ports:  uint32(f.ports), Flows: uint32(f.flows), Stride: coprime(f.flows),
	}
	if f.order {
		s.Stride = 1
	}
	copy(s.L2[:], f.octets[:ethernetHeader])
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.Words)), unsafe.Sizeof(s.Words)),
		f.octets[ethernetHeader:])
	return s
}

// coprime returns a stride that visits all flows before it visits one again.
func coprime(flows int) uint32 {
	stride := int(goldenRatio * float64(flows))
	for gcd(stride, flows) != 1 {
		stride++
	}
	return uint32(stride)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// benchDriver is the driver in the kernel.
type benchDriver struct {
	*ebpf.Collection
	ingress int
}

func newBenchDriver(t testing.TB, ingress int) *benchDriver {
	t.Helper()
	spec, err := loadBench()
	must(t, err)
	collection, err := ebpf.NewCollection(spec)
	must(t, err)
	t.Cleanup(collection.Close)
	return &benchDriver{Collection: collection, ingress: ingress}
}

// run gives the program repeat packets and returns the processor time that one took, driver
// included, and the last verdict.
func (d *benchDriver) run(t testing.TB, program *ebpf.Program, frame benchFrame,
	repeat int) (ns float64, verdict uint32) {
	t.Helper()
	must(t, d.Maps[benchMapTarget].Put(uint32(0), program))
	must(t, d.Variables[benchVarDriver].Set(frame.settings()))
	defer holdPreemption(t)()
	start := threadTime(t)
	verdict, err := d.Programs[benchProgDrive].Run(&ebpf.RunOptions{
		Data:    frame.octets,
		Context: runContext(program.Type(), len(frame.octets), d.ingress),
		Repeat:  uint32(repeat),
	})
	must(t, err)
	return (threadTime(t) - start) / float64(repeat), verdict
}

// holdPreemption keeps from this thread the signals that the Go runtime sends itself, at which the
// kernel would begin the repeats anew. It returns what lets them in again.
func holdPreemption(t testing.TB) (release func()) {
	t.Helper()
	var preemption, before unix.Sigset_t
	preemption.Val[0] = 1 << (unix.SIGURG - 1)
	must(t, unix.PthreadSigmask(unix.SIG_BLOCK, &preemption, &before))
	return func() { must(t, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)) }
}

// threadTime is the processor time of this thread in ns. The time that others take does not count;
// the kernel's own measure has whole nanoseconds per packet only.
func threadTime(t testing.TB) float64 {
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return float64(now.Nano())
}

// oneCPU keeps the measuring thread where its caches and per-CPU tables are, on the processor that
// it returns.
func oneCPU(t testing.TB) int {
	t.Helper()
	var now unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &now))
	for cpu := range len(now) * 64 {
		if now.IsSet(cpu) {
			var one unix.CPUSet
			one.Set(cpu)
			must(t, unix.SchedSetaffinity(0, &one))
			return cpu
		}
	}
	t.Fatal("no processor is allowed")
	return 0
}
