package config_test

import (
	"net/netip"
	"testing"
	"time"

	"sextant/config"
)

func TestDiffOfChecks(t *testing.T) {
	a, b := load(t, "check"), load(t, "check")
	b.Edge.Services[0].Check.Interval = 5 * time.Second
	b.Edge.Services[0].Backends[0].Agent = netip.AddrPort{}
	b.Edge.Services[1].Check.Status.Last = 204
	b.Edge.Services[2].Check = nil
	b.Edge.Services[4].Check.Command[2] = "example.org"
	const tcp = "timeout 1s rise 2 fall 3 jitter 0.1 startup up panic 0.5"
	const page = "http interval 2s timeout 1s rise 2 fall 3 jitter 0.1 startup up panic 0 " +
		`reuse true path "/" host "web.example" status `
	want := "~ service plain: check tcp interval 2s " + tcp +
		" function e046 source 192.0.2.225 -> tcp interval 5s " + tcp +
		" function e046 source 192.0.2.225\n" +
		"~ service plain: backend web1: agent [fd00:5e::51]:9477 -> none\n" +
		"~ service page: check " + page + `200 body "all's well" -> ` + page +
		`200-204 body "all's well"` + "\n" +
		"~ service secure: check https interval 2s timeout 1s rise 1 fall 1 jitter 0.5 startup " +
		"down panic 0.5 " +
		`path "/healthz" status 200-399 insecure true -> none` + "\n" +
		"~ service dns: check exec interval 2s " + tcp +
		` command ["/usr/bin/dig" "+short" "example.com"] -> exec interval 2s ` + tcp +
		` command ["/usr/bin/dig" "+short" "example.org"]`
	if got := lines(config.Diff(a, b)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := config.Diff(a, a.Clone()); len(got) > 0 {
		t.Errorf("a copy differs: %v", got)
	}
}

// A clone's check is its own.
func TestCloneOfChecks(t *testing.T) {
	a := load(t, "check")
	b := a.Clone()
	b.Edge.Services[4].Check.Command[0], b.Edge.Services[0].Check.Rise = "/bin/true", 9
	if a.Edge.Services[4].Check.Command[0] != "/usr/bin/dig" || a.Edge.Services[0].Check.Rise != 2 {
		t.Error("a change of the copy changed the original")
	}
}

func TestWhatIsChecked(t *testing.T) {
	services := load(t, "check").Edge.Services
	sid := netip.MustParseAddr("fcbb:bb00:1::")
	for i, want := range []struct{ sid, target string }{
		{"fcbb:bb00:1:e046::", "192.0.2.1:80"}, {"fcbb:bb00:1::", "192.0.2.2:80"},
		{"fcbb:bb00:1::", "192.0.2.3:443"},
		{"fcbb:bb00:1::", "192.0.2.4:50051"}, {"fcbb:bb00:1::", "192.0.2.5:53"},
	} {
		s := services[i]
		if got := s.Check.SID(sid).String(); got != want.sid {
			t.Errorf("service %s is checked at %s, want %s", s.Name, got, want.sid)
		}
		if got := s.Check.Target(s.Endpoint).String(); got != want.target {
			t.Errorf("service %s: %s is checked, want %s", s.Name, got, want.target)
		}
	}
}
