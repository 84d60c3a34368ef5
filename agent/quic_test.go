package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath/packettest"
	"sextant/lb/discovery"
	"sextant/packet/quiclb"
	"sextant/routing/bgp"
)

// A QUIC service: what carries a server's connection ID goes to that server alone, also when it is
// drained, and when the agent that follows has the configuration from its state. What the agent
// explains is so.
func TestQUIC(t *testing.T) {
	m := newMachine(t)
	m.reach()
	text := m.quic(nodeText)
	a := m.start(text)
	check := func(when string) {
		t.Helper()
		for server, backend := range map[uint16]string{1: "[web1]", 2: "[web2]", 3: "[web3]"} {
			a.wantServer(when, server, backend)
		}
	}
	check("at first")
	for _, e := range a.explainQUIC(packettest.QUICLong(0xc0, [4]byte{3: 1},
		packettest.ClientID)) {
		if len(e.OfferedTo) != 2 {
			t.Errorf("a connection is offered to %s", e.OfferedTo)
		}
	}
	draining := config.Draining
	_, err := a.PutBackend(t.Context(), api.Update, "h3", "web2", api.BackendSpec{State: &draining})
	must(t, err)
	check("drained")
	a.stop()
	a = m.start(text)
	defer func() { a.stop() }()
	check("after a restart")
	backends, err := a.Backends(t.Context(), "h3")
	must(t, err)
	if backends[1].State != config.Draining {
		t.Errorf("web2 is %s after a restart", backends[1].State)
	}
}

// A backend that routing tells of has connection IDs as soon as it is one.
func TestQUICOfLearnedBackend(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(m.quic(bgpText))
	defer func() { a.stop() }()
	host := openHost(t)
	is, drains := serving(0x77, false), serving(0x78, true) // who drains is in no chain
	is.Services = []discovery.Port{{Protocol: config.UDP, Port: 443}}
	drains.Services = is.Services
	must(t, host.Announce([]bgp.Announcement{is}))
	a.awaitBackend("h3", "bgp-fcbb-bb00-77")
	a.wantServer("learned", 0x77, "[bgp-fcbb-bb00-77]")
	must(t, host.Announce([]bgp.Announcement{is, drains}))
	a.awaitBackend("h3", "bgp-fcbb-bb00-78")
	a.wantServer("learned, and drained", 0x78, "[bgp-fcbb-bb00-78]")
	a.wantServer("configured", 2, "[web2]")
}

// awaitBackend waits until a service has a backend.
func (r *running) awaitBackend(service, name string) {
	r.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		backends, err := r.Backends(r.t.Context(), service)
		must(r.t, err)
		if slices.ContainsFunc(backends, func(b api.Backend) bool { return b.Name == name }) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("service %s has no backend %s: %+v", service, name, backends)
		}
	}
}

const quicKey = "00112233445566778899aabbccddeeff"

// quic is a node file with a QUIC service of three backends in place of the one of DNS.
func (m *machine) quic(text string) string {
	m.t.Helper()
	must(m.t, os.WriteFile(filepath.Join(m.dir, "key"), []byte(quicKey+"\n"), 0o600))
	return strings.NewReplacer(`    - {name: dns, vip: 192.0.2.53, port: any, protocol: udp, backends: [{name: dns1, sid: "fcbb:bb00:4::"}]}`, `
    - name: h3
      vip: 2001:db8:80::80
      port: 443
      protocol: udp
      quic: {configs: [{rotation: 1, serverIDLength: 3, nonceLength: 6, keyFile: DIR/key}]}
      backends: [{name: web1, sid: "fcbb:bb00:1::"}, {name: web2, sid: "fcbb:bb00:2::"}, {name: web3, sid: "fcbb:bb00:3::"}]`,
		`{name: rest, vip: 2001:db8:80::81, port: any}`,
		`{name: h3, vip: 2001:db8:80::80, protocol: udp, port: 443, quic: true}`).Replace(text)
}

// wantServer sees that a backend gets what carries connection IDs of a server.
func (r *running) wantServer(when string, server uint16, backend string) {
	r.t.Helper()
	secret, err := config.ParseQUICKey(quicKey)
	must(r.t, err)
	codec := quiclb.Config{Rotation: 1, ServerIDLength: 3, NonceLength: 6, Key: secret}
	carrier := fmt.Sprintf("fcbbbb00%04x0000", server)
	for _, e := range r.explainQUIC(packettest.QUICShort(packettest.ServerConnectionID(r.t,
		codec, server))) {
		const outer = 2 * (14 + 24) // digits in front of the outer destination
		if got := fmt.Sprint(e.OfferedTo); got != backend ||
			!strings.HasPrefix(e.Frame[outer:], carrier) {
			r.t.Errorf("%s: server %d has the connection ID, the packet is said to go to %s, "+
				"and goes to %s", when, server, got, e.Frame[outer:outer+32])
		}
	}
}

// explainQUIC tells what becomes of a QUIC packet, whatever port of the client it comes from.
func (r *running) explainQUIC(payload []byte) []api.Explanation {
	r.t.Helper()
	q := api.Question{Role: api.Edge}
	for port := uint16(40000); port < 40020; port++ {
		packet := packettest.Web6("").Of(17, payload...)
		packet.SrcPort, packet.DstPort = port, 443
		q.Frames = append(q.Frames, packettest.FromClient().Frame(r.t, packet.Bytes(r.t)))
	}
	list := r.explain(q)
	if len(list) != len(q.Frames) {
		r.t.Fatalf("explained %+v", list)
	}
	for _, e := range list {
		if e.Verdict != "transmit" || e.Service != "h3" {
			r.t.Fatalf("explained %+v", e)
		}
	}
	return list
}
