package datapath

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"sextant/datapath/packettest"
	"sextant/linux/linuxtest"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

// meterQuestion is struct meter_question of bpf/bench_tc.c.
type meterQuestion struct {
	At, Octets, Rate       uint64
	Counter, Now, Constant uint64
}

// TestMeterAgreesWithGo reads meters at random times: within a time constant and long after it,
// after bursts, with counters that wrap and that begin anew.
func TestMeterAgreesWithGo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing privilege: loading eBPF programs needs root")
	}
	spec, err := loadBenchTC()
	must(t, err)
	var objects struct {
		MeterAsk *ebpf.Program `ebpf:"meter_ask"`
	}
	must(t, spec.LoadAndAssign(&objects, nil))
	defer objects.MeterAsk.Close()
	random := rand.New(rand.NewPCG(7, 17))
	changed, wrapped := 0, 0
	for range 200 {
		constant := uint64(1000) << random.UintN(22)
		q, m := meterQuestion{Constant: constant}, srpolicy.Meter{}
		q.Counter = random.Uint64() // each other one is beyond half of the numbers
		for range 50 {
			q.Now += 1 + random.Uint64N(constant<<random.UintN(18))
			before := q.Counter
			q.Counter += random.Uint64N(1 << random.UintN(40))
			if q.Counter < before {
				wrapped++
			}
			switch random.UintN(20) {
			case 0:
				q.Counter = random.Uint64N(1 << 20)
			case 1:
				q.Counter = -random.Uint64N(1 << 20)
			}
			last := q.Rate
			_, err := objects.MeterAsk.Run(&ebpf.RunOptions{Context: q,
				ContextOut: &q})
			must(t, err)
			if want := m.Read(q.Counter, time.Duration(q.Now),
				time.Duration(constant)); q.Rate != want {
				t.Fatalf("%+v: Go says %d", q, want)
			}
			if q.Rate != last {
				changed++
			}
		}
	}
	if changed < 5000 || wrapped < 50 {
		t.Errorf("%d rates changed, %d counters wrapped", changed, wrapped)
	}
}

// TestUtilizationMetered sends packets by an interface, each of which asks how much of the link is
// used. Without a queue they say what user space measured. With one that counts octets they say
// what CONGA's estimator makes of the octets and times of the packets themselves.
func TestUtilizationMetered(t *testing.T) {
	if !KnowsQueues() {
		t.Skip("missing kernel feature: bpf_cast_to_kern_ctx, Linux 6.2")
	}
	w := newWorld(t)
	program, err := OpenTelemetry(w.dir, TelemetryConfig{Node: telemetryNode, Port: telemetryPort,
		Source: []string{"far"}, Infrastructure: telemetryInside})
	must(t, err)
	t.Cleanup(program.Close)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	_, err = program.Commit()
	must(t, err)
	must(t, program.SetClasses([]TelemetryClass{{OneIn: 1, InTurn: true, Hops: 1,
		Instructions: telemetry.EgressTime | telemetry.Utilization}}))
	const kbps = 20_000 // a time constant of 80 ms
	must(t, program.SetRates(map[uint32]int{uint32(w.far): kbps}))
	must(t, program.SetUtilization(map[uint32]uint32{uint32(w.far): telemetryUsed}))
	out, in := openWireOn(t, "far"), openWireOn(t, "farpeer")
	if hop, _ := askUtilization(t, out, in); hop.Utilization != telemetryUsed {
		t.Errorf("noqueue: %d ppm; user space measured %d", hop.Utilization, telemetryUsed)
	}
	must(t, netlink.QdiscAdd(&netlink.GenericQdisc{QdiscType: "pfifo",
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: w.far, Handle: netlink.MakeHandle(1, 0),
			Parent: netlink.HANDLE_ROOT}}))
	const packets = 800
	var at, rate, sent, before float64 // as CONGA's estimator has them, in seconds and octets
	near := 0
	for i := range packets {
		hop, octets := askUtilization(t, out, in)
		now := float64(hop.EgressTimeNS%1e15) / 1e9
		if i == 0 {
			at = now
			if hop.Present&telemetry.Utilization != 0 {
				t.Errorf("the first packet says %d ppm", hop.Utilization)
			}
		} else if e, c := now-at, meterOctets*8/(kbps*1e3); e > c/8 {
			rate = (rate*c + sent - before) / (c + e)
			at, before = now, sent
		}
		want := min(1e6, rate*8/(kbps*1e3)*1e6)
		if i > 0 && math.Abs(float64(hop.Utilization)-want) <= 0.02*want {
			near++
		}
		sent += octets
		time.Sleep(300 * time.Microsecond)
	}
	if near < packets*9/10 || rate == 0 {
		t.Errorf("%d of %d packets say what octets and times do; at last %.0f octets/s", near,
			packets, rate)
	}
}

// askUtilization sends a packet, and returns what it says at the other end, and the length by which
// the kernel counts it: that before telemetry was inserted.
func askUtilization(t *testing.T, out, in wire) (hop telemetry.Metadata, octets float64) {
	t.Helper()
	inner := packettest.Packet{Src: netip.MustParseAddr("2001:db8::1"), SrcPort: 7, DstPort: 80,
		Dst: netip.MustParseAddr("2001:db8::2"), Flags: "A", Payload: make([]byte, 700)}.Bytes(t)
	frame := benchCarried(t, layers.IPProtocolIPv6, inner, len(inner)).octets
	out.send(t, frame)
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, _, err := linuxtest.Receive(in.fd, buffer)
		must(t, err)
		if md, err := mdIn(buffer[:n]); err == nil && md.Instructions != 0 {
			hop, _ := md.Hop(0)
			return hop, float64(len(frame))
		}
	}
	t.Fatalf("no packet with telemetry within %v", wirePatience)
	return hop, 0
}
