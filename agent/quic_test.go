package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath/packettest"
	"sextant/packet/quiclb"
)

// A QUIC service: what carries a server's connection ID goes to that server alone, also when it is
// drained, and when the agent that follows has the configuration from its state. What the agent
// explains is so.
func TestQUIC(t *testing.T) {
	m := newMachine(t)
	m.reach()
	key := "00112233445566778899aabbccddeeff"
	must(t, os.WriteFile(filepath.Join(m.dir, "key"), []byte(key+"\n"), 0o600))
	text := strings.Replace(nodeText, `    - {name: dns, vip: 192.0.2.53, port: any, protocol: udp, backends: [{name: dns1, sid: "fcbb:bb00:4::"}]}`, `
    - name: h3
      vip: 2001:db8:80::80
      port: 443
      protocol: udp
      quic: {configs: [{rotation: 1, serverIDLength: 3, nonceLength: 6, keyFile: DIR/key}]}
      backends: [{name: web1, sid: "fcbb:bb00:1::"}, {name: web2, sid: "fcbb:bb00:2::"}, {name: web3, sid: "fcbb:bb00:3::"}]`, 1)
	text = strings.Replace(text, `{name: rest, vip: 2001:db8:80::81, port: any}`,
		`{name: h3, vip: 2001:db8:80::80, protocol: udp, port: 443, quic: true}`, 1)
	secret, err := config.ParseQUICKey(key)
	must(t, err)
	codec := quiclb.Config{Rotation: 1, ServerIDLength: 3, NonceLength: 6, Key: secret}
	a := m.start(text)
	check := func(when string) {
		t.Helper()
		for server, backend := range map[uint16]string{1: "[web1]", 2: "[web2]", 3: "[web3]"} {
			for _, got := range a.explainQUIC(packettest.QUICShort(packettest.ServerConnectionID(t,
				codec, server))) {
				if got != backend {
					t.Errorf("%s: server %d has the connection ID, %s gets the packet", when,
						server, got)
				}
			}
		}
	}
	check("at first")
	for _, got := range a.explainQUIC(packettest.QUICLong(0xc0, [4]byte{3: 1},
		packettest.ClientID)) {
		if len(strings.Fields(got)) != 2 {
			t.Errorf("a connection is offered to %s", got)
		}
	}
	draining := config.Draining
	_, err = a.PutBackend(t.Context(), api.Update, "h3", "web2", api.BackendSpec{State: &draining})
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

// explainQUIC tells who is offered a QUIC packet, whatever port of the client it comes from.
func (r *running) explainQUIC(payload []byte) (offered []string) {
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
		offered = append(offered, fmt.Sprint(e.OfferedTo))
	}
	return offered
}
