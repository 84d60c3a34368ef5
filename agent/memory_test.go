package agent_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/agent"
)

// manyServices is the text of an edge of so many services with so many backends each.
func manyServices(services, backends int) string {
	var b strings.Builder
	b.WriteString(`
node: many1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
edge:
  interfaces: [{name: edge0}]
  source: fd00:5e::e1
  services:
`)
	for s := range services {
		fmt.Fprintf(&b, "    - name: s%d\n      vip: 2001:db8:80::80\n      port: %d\n", s, 1+s)
		b.WriteString("      backends:\n")
		for i := range backends {
			fmt.Fprintf(&b, "        - {name: b%d, sid: \"fcbb:bb00:%x::\"}\n", i,
				1+(s*backends+i)%50000)
		}
	}
	return b.String()
}

// heap is what is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// tableBytes is what the kernel holds for the chains of services, and how many blocks they are in.
func (m *machine) tableBytes() (blocks int, bytes uint64) {
	m.t.Helper()
	tables, err := ebpf.LoadPinnedMap(filepath.Join(m.pins, "edge", "tables"), nil)
	must(m.t, err)
	defer tables.Close()
	for index := range tables.MaxEntries() {
		var inner *ebpf.Map
		err := tables.Lookup(index, &inner)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		must(m.t, err)
		info, err := inner.Info()
		must(m.t, err)
		held, ok := info.Memlock()
		if !ok {
			m.t.Fatal("the kernel does not say what a block takes")
		}
		blocks, bytes = blocks+1, bytes+held
		must(m.t, inner.Close())
	}
	return blocks, bytes
}

// TestMemoryOfServices holds 100 services of 20 backends to 40 MiB of the agent, also of one that
// takes over, and as much of the kernel, and the estimate to what they take.
func TestMemoryOfServices(t *testing.T) {
	const services, backends, most = 100, 20, 40 << 20
	m := newMachine(t)
	text := manyServices(services, backends)
	node := m.parse(text)
	before := heap()
	r := m.start(text)
	held := heap() - before
	r.stop()
	before = heap()
	r = m.start(text)
	defer r.stop()
	if held := heap() - before; held > most {
		t.Errorf("an agent that takes over holds %d bytes, more than %d", held, most)
	}
	for index := range uint32(services) {
		if len(m.chainsOf(index+1)) == 0 {
			t.Fatalf("service %d has no chains", index+1)
		}
	}
	_, kernel := m.tableBytes()
	t.Logf("%d services of %d: %d bytes of the agent, %d of the kernel", services, backends, held,
		kernel)
	if held > most {
		t.Errorf("the agent holds %d bytes, more than %d", held, most)
	}
	if kernel > most {
		t.Errorf("the kernel holds %d bytes of chains, more than %d", kernel, most)
	}
	estimate := agent.EstimateMemory(node)
	alone := agent.EstimateMemory(m.parse(manyServices(0, 0)))
	if tables := estimate.Kernel - alone.Kernel; kernel > tables {
		t.Errorf("the kernel holds %d bytes of chains, and %d were estimated", kernel, tables)
	}
	if held > int(estimate.Agent) {
		t.Errorf("the agent holds %d bytes, and %d were estimated", held, estimate.Agent)
	}
}

// Services that go, one after the other or together, give back what they held in the kernel.
func TestMemoryOfServicesThatGo(t *testing.T) {
	const services = 60
	m := newMachine(t)
	r := m.start(manyServices(services, 2))
	defer r.stop()
	left := func(how string, before int) {
		t.Helper()
		if after, bytes := m.tableBytes(); before < 3 || after != 1 {
			t.Errorf("one service of %d is left, as others went %s, and the kernel holds %d of %d "+
				"blocks, %d bytes", services, how, after, before, bytes)
		}
	}
	before, _ := m.tableBytes()
	for i := range services - 1 {
		if _, err := r.DeleteService(t.Context(), fmt.Sprintf("s%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	left("alone", before)
	for _, many := range []int{services, 1} {
		before, _ = m.tableBytes()
		if _, err := r.apply(m.text(manyServices(many, 2)), false); err != nil {
			t.Fatal(err)
		}
	}
	left("together", before)
}
