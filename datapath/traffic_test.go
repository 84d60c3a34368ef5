package datapath

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
)

// wentTo is a service and the backend that a packet was offered to first.
type wentTo struct {
	service uint32
	id      uint16
}

func idsFrom(first, step, count int) (ids []uint16) {
	for i := range count {
		ids = append(ids, uint16(first+i*step))
	}
	return ids
}

// serveFrom gives the buckets of a service chains of the ids in turn, two of them each.
func serveFrom(t *testing.T, e *Edge, service uint32, ids []uint16) {
	t.Helper()
	chains := make([]chain, tableBuckets)
	for b := range chains {
		chains[b] = chain{Length: 2, Candidates: 1}
		chains[b].IDs[0] = bigEndian(ids[b%len(ids)])
		chains[b].IDs[1] = bigEndian(ids[(b+1)%len(ids)])
	}
	must(t, putChains(e, service, chains))
}

// ledger is what the packets themselves say about where they went.
type ledger struct {
	all      map[uint32]Traffic
	backends map[wentTo]Traffic
}

// send sends a packet of a service and enters where it went.
func (l *ledger) send(t *testing.T, run *runner, service uint32, random *rand.Rand) {
	t.Helper()
	port := uint16(1024 + random.IntN(60000))
	packet := [...]packettest.Packet{
		{Src: packettest.Client4, Dst: packettest.VIP4, DstPort: 80, Flags: "A"},
		{Src: packettest.Client6, Dst: packettest.VIP6, DstPort: 80, Flags: "A"},
		{Src: packettest.Client6, Dst: packettest.VIP6, DstPort: 4433, Protocol: unix.IPPROTO_UDP},
		{Src: packettest.Client4, Dst: packettest.VIP4, DstPort: 53, Protocol: unix.IPPROTO_UDP},
	}[service]
	packet.SrcPort, packet.Payload = port, make([]byte, random.IntN(200))
	inner := packet.Bytes(t)
	verdict, after := run.run(t, packettest.FromClient().Frame(t, inner))
	if verdict != xdpRedirect && verdict != xdpTransmit {
		t.Fatalf("a packet of service %d gets verdict %d", service, verdict)
	}
	id := fromBigEndian([2]byte(after[ethernetHeader+ipv6Destination+4:]))
	one := Traffic{Packets: 1, Bytes: uint64(len(inner))}
	all, backend := l.all[service], l.backends[wentTo{service, id}]
	addWords(&all, one)
	addWords(&backend, one)
	l.all[service], l.backends[wentTo{service, id}] = all, backend
}

// is compares the ledger with the program's counters.
func (l *ledger) is(t *testing.T, e *Edge, uncounted bool) {
	t.Helper()
	for service, all := range l.all {
		var ids []uint16
		for at := range l.backends {
			if at.service == service {
				ids = append(ids, at.id)
			}
		}
		slices.Sort(ids)
		got, err := e.ServiceTraffic(service, ids...)
		must(t, err)
		sum := got.Others
		for i, id := range ids {
			addWords(&sum, got.Backends[i])
			if want := l.backends[wentTo{service, id}]; got.Backends[i] != want && !uncounted {
				t.Errorf("service %d, backend %d: %+v, want %+v", service, id, got.Backends[i],
					want)
			}
		}
		if got.All != all || sum != all || (got.Others != Traffic{}) != uncounted {
			t.Errorf("service %d: %+v in all, %+v by backends, %+v uncounted; want %+v", service,
				got.All, sum,
				got.Others, all)
		}
	}
	stranger, err := e.ServiceTraffic(9, 1)
	if err != nil || stranger.All != (Traffic{}) || stranger.Backends[0] != (Traffic{}) {
		t.Errorf("a service without packets has %+v, %v", stranger, err)
	}
}

// Each packet is counted with its service and with the backend of this service to which it goes
// first, whatever other services have the same backend, wherever ids fall, on all CPUs, while
// backends come and go. What is counted here is what the packets say themselves.
func TestTrafficOfServicesAndBackends(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	run := newRunner(e.programs[External], w.near)
	random := rand.New(rand.NewPCG(14, 1))
	l := ledger{map[uint32]Traffic{}, map[wentTo]Traffic{}}
	var before unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &before))
	defer func() { must(t, unix.SchedSetaffinity(0, &before)) }()
	for _, round := range [][4][]uint16{
		{idsFrom(1, 1, 20), idsFrom(1, 32, 20), idsFrom(100, 1, 33), idsFrom(15, 1, 10)},
		// Services 0 and 1 meet: the ids of one lie where those of the other do.
		{idsFrom(countersStep, 1, 30), idsFrom(1, 1, 30), idsFrom(1, 1, 3), idsFrom(7, 3, 30)},
		{idsFrom(15, 1, 20), idsFrom(2, 32, 40), idsFrom(90, 1, 64), idsFrom(1, 1, 1)},
		{idsFrom(1, 1, 20), idsFrom(0xdf00, 1, 5), idsFrom(100, 1, 33), idsFrom(15, 1, 10)},
	} {
		for service, ids := range round {
			serveFrom(t, e, uint32(service), ids)
		}
		for cpu := range runtime.NumCPU() {
			var one unix.CPUSet
			one.Set(cpu)
			// where that CPU is not ours, this is the previous one
			_ = unix.SchedSetaffinity(0, &one)
			for range 2000 {
				l.send(t, run, uint32(random.IntN(4)), random)
			}
		}
	}
	l.is(t, e, false)
}

// Packets to backends for which no counter is left are counted as such: nothing is lost from the
// sum.
func TestTrafficOfTooManyBackends(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	oneCPU(t) // each has counters of its own
	e := tableEdge(t, w, Carrier)
	run := newRunner(e.programs[External], w.near)
	random := rand.New(rand.NewPCG(14, 2))
	l := ledger{map[uint32]Traffic{}, map[wentTo]Traffic{}}
	// Two ids whose places differ by all counters share a place, so these compete for half as many
	// counters as they are, up to the last probe behind them.
	ids := append(idsFrom(100, 1, 70), idsFrom(100+counters%(1<<16), 1, 70)...)
	for first := 0; first < len(ids); first += 20 { // so that all of them get packets
		serveFrom(t, e, 1, ids[first:min(first+20, len(ids))])
		for range 2000 {
			l.send(t, run, 1, random)
		}
	}
	l.is(t, e, true)
}
