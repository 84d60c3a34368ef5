package agent_test

import (
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
)

// A change that is refused, whatever refuses it, leaves sessions alone.
func TestRefusedChangeKeepsSessions(t *testing.T) {
	m := newMachine(t)
	d := m.disk()
	a := m.start(bgpText)
	defer a.stop()
	openHost(t)
	session := func() (peer api.BGPPeer) {
		t.Helper()
		peers, err := a.BGPPeers(t.Context())
		must(t, err)
		if len(peers) != 1 {
			t.Fatalf("neighbors %+v, want one", peers)
		}
		return peers[0]
	}
	eventually(t, "the session is up", func() bool { return session().State == "established" })
	since := session().Since
	text := m.text(bgpText, "passive: true", "passive: true, holdTime: 30s")
	ends := strings.Replace(text, "fcbb:bb00:9::/48", "fcbb:bb00:a::/48", 1)
	password := strings.Replace(text, "passive: true", "passive: true, passwordFile: /none", 1)
	for name, refused := range map[string]func() error{
		"guard": func() error {
			_, err := a.Apply(t.Context(), "node.yaml", []byte(ends), false)
			return err
		},
		"guard, on condition": func() error {
			_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(ends), time.Hour)
			return err
		},
		"full disk": func() error {
			d.fill()
			defer d.empty()
			_, err := a.apply(text, false)
			return err
		},
		"password": func() error {
			_, err := a.apply(password, false)
			return err
		},
		"password, dry run": func() error {
			_, err := a.apply(password, true)
			return err
		},
	} {
		if err := refused(); err == nil {
			t.Errorf("%s: nothing is refused", name)
		}
		if now := session(); now.State != "established" || !now.Since.Equal(*since) {
			t.Fatalf("%s: the session that was up since %v is %+v", name, since, now)
		}
	}
	_, err := a.apply(text, false)
	must(t, err)
	if now := session(); now.State == "established" && now.Since.Equal(*since) {
		t.Error("another holdTime began no new session")
	}
}
