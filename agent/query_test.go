package agent_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/datapath/packettest"
)

const twoServicesText = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
edge:
  interfaces: [{name: edge0}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 2001:db8:80::80, port: 80, backends: [{name: web1, sid: "fcbb:bb00:1::"}]}
    - {name: web-ipv4, vip: 192.0.2.80, port: 80, backends: [{name: web1, sid: "fcbb:bb00:1::"}]}
`

// process gives a frame to the program that the agent attached to an interface.
func (m *machine) process(pin, device string, frame []byte) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		l, err := link.LoadPinnedLink(filepath.Join(m.pins, pin), nil)
		if err != nil {
			return err
		}
		defer l.Close()
		info, err := l.Info()
		if err != nil {
			return err
		}
		program, err := ebpf.NewProgramFromID(info.Program)
		if err != nil {
			return err
		}
		defer program.Close()
		at, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		context := struct{ Data, End, Meta, Ingress, Queue, Egress uint32 }{
			End: uint32(len(frame)), Ingress: uint32(at.Attrs().Index),
		}
		_, err = program.Run(&ebpf.RunOptions{Data: frame, DataOut: make([]byte, 4096),
			Context: context})
		return err
	}))
}

// A backend of two services shows with each of them what this service sent to it.
func TestBackendsAreCountedPerService(t *testing.T) {
	m := newMachine(t)
	r := m.start(twoServicesText)
	defer r.stop()
	packet := packettest.Packet{
		Src: packettest.Client6, Dst: packettest.VIP6, SrcPort: 40000, DstPort: 80, Flags: "A",
	}.Bytes(t)
	for range 3 {
		m.process("edge/link_edge_xdp_edge0", "edge0", packettest.FromClient().Frame(t, packet))
	}
	services, err := r.Services(t.Context(), "", "")
	must(t, err)
	for i, want := range []uint64{3, 0} {
		s := services[i]
		if s.Packets != want || s.Edge.Backends[0].Packets != want ||
			s.Edge.Backends[0].Bytes != want*uint64(len(packet)) {
			t.Errorf("%s: %d packets, its backend %+v; want %d of each", s.Name, s.Packets,
				s.Edge.Backends[0], want)
		}
	}
}

// A list that takes several turns of the owner goroutine has all services, in their order.
func TestListInTurns(t *testing.T) {
	const services = 200
	m := newMachine(t)
	r := m.start(m.text(manyServices(services, 1)))
	defer r.stop()
	list, err := api.Ask[api.ServiceList](t.Context(), r.Client, http.MethodGet, "/v1/services",
		nil, nil)
	must(t, err)
	if len(list.Items) != services {
		t.Fatalf("%d services, not %d", len(list.Items), services)
	}
	for i, s := range list.Items {
		if want := fmt.Sprintf("s%d", i); s.Name != want || len(s.Edge.Backends) != 1 {
			t.Errorf("service %d is %s with %d backends, not %s", i, s.Name,
				len(s.Edge.Backends), want)
		}
	}
}
