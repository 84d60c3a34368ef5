package datapath

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
)

// A capacity has room for what it is asked for, and a step more services are seldom another one.
func TestCapacityFor(t *testing.T) {
	seen := map[Capacity]bool{}
	for _, services := range []int{0, 1, 1023, 1024, 5000, 20000, MaxServices - 1} {
		for _, each := range []int{1, 10, 100} {
			c := CapacityFor(services, services*each, 0)
			if c.Services <= services || c.Services > MaxServices {
				t.Errorf("%d services: room for %d", services, c.Services)
			}
			if c.Counters < min(2*services*each, maxCounters) {
				t.Errorf("%d backends: %d counters", services*each, c.Counters)
			}
			seen[c] = true
		}
	}
	if len(seen) > 14 {
		t.Errorf("%d capacities for 21 sizes", len(seen))
	}
}

// There is room for the paths of four times as many backends as have some, and for twice as many
// until there is the most.
func TestCapacityForPaths(t *testing.T) {
	for led, want := range map[int]int{0: 1024, 256: 1024, 257: 2048, 100_000: 1 << 19,
		maxPathPlaces: maxPathPlaces} {
		c := CapacityFor(1, led, led)
		if c.Paths != want {
			t.Errorf("%d backends with paths: %d places, want %d", led, c.Paths, want)
		}
		more, grows := c.WithMorePaths()
		if grows != (want < maxPathPlaces) || more.Paths != min(2*want, maxPathPlaces) {
			t.Errorf("more than %d places: %d, %v", c.Paths, more.Paths, grows)
		}
	}
}

// Counters of services and backends go on in an edge with more room, and in one with less; the
// program of either counts at the place where they are read.
func TestCountersInOtherCapacities(t *testing.T) {
	w := newWorld(t)
	addRoute(t, "fcbb:bb00::/32", "fd00:5e:1::2", 0)
	frame := tcpFrame(t, tupleOf(clientV6, hostVIPv6, 1), &layers.TCP{SYN: true})
	const backend = 9
	counted := map[uint32]uint64{} // packets by service
	for _, c := range []Capacity{{}, {4096, 65536, 0, 0}, {65536, 1 << 20, 0, 0},
		{1024, 32768, 0, 0}} {
		config := edgeConfig(t)
		config.Capacity = c
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		index := uint32(c.orCompiled().Services - 1)
		must(t, serveAt(e, index, backend))
		_, err = e.Commit()
		must(t, err)
		for service, packets := range counted {
			if int(service) < c.orCompiled().Services {
				wantCounted(t, e, service, backend, packets)
			} else {
				delete(counted, service)
			}
		}
		const packets = 5
		for range packets {
			verdict, _ := newRunner(e.programs[External], w.near).run(t, frame)
			if verdict != xdpTransmit {
				t.Fatalf("%+v: verdict %d, want that of a packet to a backend", c, verdict)
			}
		}
		counted[index] += packets
		wantCounted(t, e, index, backend, counted[index])
		e.Close()
	}
}

// serveAt makes the test's service that of an index.
func serveAt(e *Edge, index uint32, backend uint16) error {
	if err := fillEdge(e, backend); err != nil {
		return err
	}
	one := e.live(1).chains()[0]
	if err := putChains(e, index, slices.Repeat([]chain{one}, tableBuckets)); err != nil {
		return err
	}
	return e.SetService(ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, index,
		tableBuckets)
}

func wantCounted(t *testing.T, e *Edge, service uint32, backend uint16, packets uint64) {
	t.Helper()
	got, err := e.ServiceTraffic(service, backend)
	must(t, err)
	if got.All.Packets != packets || got.Backends[0].Packets != packets {
		t.Errorf("service %d: %d packets, %d of them to the backend, want %d", service,
			got.All.Packets, got.Backends[0].Packets, packets)
	}
}

// The kernel's own numbers hold the estimate of what a capacity takes.
func TestCapacityKernelBytes(t *testing.T) {
	w := newWorld(t)
	held := func(c Capacity) (bytes int) {
		config := edgeConfig(t)
		config.Capacity = c
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		defer e.Close()
		for _, name := range append([]string{"backend_traffic", "paths"}, perService...) {
			info, err := e.maps[name].Info()
			must(t, err)
			locked, ok := info.Memlock()
			if !ok {
				t.Fatalf("the kernel does not say what %s takes", name)
			}
			bytes += int(locked)
		}
		return bytes
	}
	least := held(Capacity{})
	for _, c := range []Capacity{{16384, 32768, 0, 0}, {1024, 1 << 18, 0, 0},
		{65536, 1 << 20, 0, 0}, {0, 0, 1 << 20, 0}} {
		takes, estimated := held(c)-least, c.KernelBytes(ebpf.MustPossibleCPU())
		t.Logf("%+v: %d bytes, %d estimated", c, takes, estimated)
		if estimated < takes || estimated > 2*takes {
			t.Errorf("%+v takes %d bytes, and %d were estimated", c, takes, estimated)
		}
	}
}
