package config_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"sextant/config"
)

func pointer[T any](v T) *T { return &v }

func address(s string) *netip.Addr { return pointer(netip.MustParseAddr(s)) }

// changes applies one change to the example edge (or, as named, another node)
// and says what came out: the differences, or the kind and text of the error.
var changes = []struct {
	name   string
	node   string
	change func(*config.Node) (*config.Node, error)
	kind   error
	want   string
}{
	{"add service", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "tls", config.ServiceChange{VIP: address("192.0.2.1"),
			Port: pointer(uint16(443))})
	}, nil, "+ service tls (vip 192.0.2.1:443/tcp, policy offer, table rendezvous, candidates 2)"},
	{"add service that is there", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "web", config.ServiceChange{})
	}, config.ErrConflict,
		`service "web" is there already; choose another name, or change it with set`},
	{"add service without vip", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "tls", config.ServiceChange{Port: pointer(uint16(443))})
	}, config.ErrInvalid, "vip is missing; give one"},
	{"add service without port", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "tls", config.ServiceChange{VIP: address("192.0.2.1")})
	}, config.ErrInvalid, "port is missing; give one"},
	{"add service at a used vip", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "tls", config.ServiceChange{VIP: address("2001:db8:80::80"),
			Port: pointer(uint16(80))})
	}, config.ErrConflict,
		`vip [2001:db8:80::80]:80/tcp is used by service "web"; choose another port or delete it`},
	{"add service to a host", "host", func(n *config.Node) (*config.Node, error) {
		return config.AddService(n, "tls", config.ServiceChange{})
	}, config.ErrConflict, `node "web1" is no edge; add "edge:" to its node file and apply it`},
	{"set service", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetService(n, "web", config.ServiceChange{Candidates: pointer(3),
			Protocol: pointer(config.UDP)})
	}, nil, "~ service web: protocol tcp -> udp\n~ service web: candidates 2 -> 3"},
	{"set service that is absent", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetService(n, "www", config.ServiceChange{})
	}, config.ErrNotFound, `there is no service "www"; known: web, all`},
	{"set service badly", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetService(n, "web", config.ServiceChange{Candidates: pointer(7)})
	}, config.ErrInvalid, "candidates 7 is out of range; write 1 to 6"},
	{"delete service", "edge", func(n *config.Node) (*config.Node, error) {
		return config.DeleteService(n, "all")
	}, nil, "- service all (vip 192.0.2.80:any/udp, policy offer, table rendezvous, candidates " +
		"2)\n" +
		"- service all: backend web1 (sid fcbb:bb00:1::, weight 1, state up)"},
	{"delete service that is absent", "edge", func(n *config.Node) (*config.Node, error) {
		return config.DeleteService(n, "www")
	}, config.ErrNotFound, `there is no service "www"; known: web, all`},

	{"add backend", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddBackend(n, "web", "web3",
			config.BackendChange{SID: address("fcbb:bb00:3::"),
				Weight: pointer(5)})
	}, nil, "+ service web: backend web3 (sid fcbb:bb00:3::, weight 5, state up)"},
	{"add backend that is there", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddBackend(n, "web", "web1",
			config.BackendChange{SID: address("fcbb:bb00:3::")})
	}, config.ErrConflict,
		`backend "web1" is there already; choose another name, or change it with set`},
	{"add backend with a used sid", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddBackend(n, "web", "web3",
			config.BackendChange{SID: address("fcbb:bb00:1::")})
	}, config.ErrConflict,
		`sid fcbb:bb00:1:: is used by backend "web1"; give each backend of a service its own SID`},
	{"add backend without sid", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddBackend(n, "web", "web3", config.BackendChange{})
	}, config.ErrInvalid, "sid is missing; give one"},
	{"add backend to no service", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddBackend(n, "www", "web3", config.BackendChange{})
	}, config.ErrNotFound, `there is no service "www"; known: web, all`},
	{"drain backend", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetBackend(n, "web", "web1",
			config.BackendChange{State: pointer(config.Draining),
				Weight: pointer(0)})
	}, nil, "~ service web: backend web1: weight 1 -> 0\n~ service web: backend web1: state up " +
		"-> draining"},
	{"move backend", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetBackend(n, "web", "web1",
			config.BackendChange{SID: address("fcbb:bb00:dfff::")})
	}, nil, "~ service web: backend web1: sid fcbb:bb00:1:: -> fcbb:bb00:dfff::"},
	{"set backend to a made-up state", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetBackend(n, "web", "web1",
			config.BackendChange{State: pointer(config.BackendState("ill"))})
	}, config.ErrInvalid, `unknown state "ill"; write up, draining, down or maintenance`},
	{"set backend that is absent", "edge", func(n *config.Node) (*config.Node, error) {
		return config.SetBackend(n, "web", "web9", config.BackendChange{})
	}, config.ErrNotFound, `there is no backend "web9"; known: web1, web2`},
	{"delete backend", "edge", func(n *config.Node) (*config.Node, error) {
		return config.DeleteBackend(n, "web", "web1")
	}, nil, "- service web: backend web1 (sid fcbb:bb00:1::, weight 1, state up)"},
	{"delete backend that is absent", "both", func(n *config.Node) (*config.Node, error) {
		return config.DeleteBackend(n, "none", "web1")
	}, config.ErrNotFound, `there is no backend "web1"; none is configured: add it first`},

	{"add host service", "host", func(n *config.Node) (*config.Node, error) {
		return config.AddHostService(n, "new", config.HostServiceChange{VIP: address("192.0.2.9"),
			Port: pointer(config.AnyPort),
			Accept: config.AcceptChange{Policy: pointer(config.Dynamic), Workers: pointer(8),
				LowPermille: pointer(250)}})
	}, nil, "+ host service new (vip 192.0.2.9:any/tcp," +
		" accept dynamic workers 8 window 50 low 0.25 high 0.6 initial 1)"},
	{"add host service to an edge", "edge", func(n *config.Node) (*config.Node, error) {
		return config.AddHostService(n, "new", config.HostServiceChange{})
	}, config.ErrConflict, `node "edge1" is no host; add "host:" to its node file and apply it`},
	{"add host service that is there", "host", func(n *config.Node) (*config.Node, error) {
		return config.AddHostService(n, "web", config.HostServiceChange{})
	}, config.ErrConflict,
		`service "web" is there already; choose another name, or change it with set`},
	{"add host service without vip", "host", func(n *config.Node) (*config.Node, error) {
		return config.AddHostService(n, "new", config.HostServiceChange{})
	}, config.ErrInvalid, "vip is missing; give one"},
	{"set host service, one parameter", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "web",
			config.HostServiceChange{Accept: config.AcceptChange{Window: pointer(100)}})
	}, nil, "~ host service web: accept dynamic workers 32 window 50 low 0.4 high 0.6 initial 1" +
		" -> dynamic workers 32 window 100 low 0.4 high 0.6 initial 1"},
	{"set host service, same policy", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "tls",
			config.HostServiceChange{Accept: config.AcceptChange{Policy: pointer(config.Static)}})
	}, nil, ""},
	{"set host service, other policy", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "web",
			config.HostServiceChange{Accept: config.AcceptChange{Policy: pointer(config.Always)}})
	}, nil, "~ host service web: accept dynamic workers 32 window 50 low 0.4 high 0.6 initial 1 " +
		"-> always"},
	{"set host service, other policy's parameter", "host",
		func(n *config.Node) (*config.Node, error) {
			return config.SetHostService(n, "web",
				config.HostServiceChange{Accept: config.AcceptChange{Threshold: pointer(3)}})
		}, config.ErrInvalid, "threshold does not belong to policy dynamic; leave it out, or " +
			"choose " +
			"policy static"},
	{"set host service, incomplete policy", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "dns",
			config.HostServiceChange{Accept: config.AcceptChange{Policy: pointer(config.Dynamic)}})
	}, config.ErrInvalid, "workers is missing; say how many connections the server works on at " +
		"once"},
	{"set host service, unknown policy", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "dns",
			config.HostServiceChange{Accept: config.AcceptChange{Policy: pointer(
				config.Policy("coin"))}})
	}, config.ErrInvalid, `unknown policy "coin"; write always, static, dynamic, average or delay`},
	{"set host service that is absent", "host", func(n *config.Node) (*config.Node, error) {
		return config.SetHostService(n, "www", config.HostServiceChange{})
	}, config.ErrNotFound, `there is no service "www"; known: web, tls, dns, api, rest`},
	{"delete host service", "host", func(n *config.Node) (*config.Node, error) {
		return config.DeleteHostService(n, "dns")
	}, nil, "- host service dns (vip 192.0.2.53:53/udp, accept always)"},
	{"delete host service that is absent", "host", func(n *config.Node) (*config.Node, error) {
		return config.DeleteHostService(n, "www")
	}, config.ErrNotFound, `there is no service "www"; known: web, tls, dns, api, rest`},
}

func TestChanges(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			before, untouched := load(t, c.node), load(t, c.node)
			after, err := c.change(before)
			if lines := config.Diff(untouched, before); len(lines) > 0 {
				t.Errorf("the node itself was changed: %v", lines)
			}
			if !errors.Is(err, c.kind) {
				t.Fatalf("error %v, want kind %v", err, c.kind)
			}
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = lines(config.Diff(before, after))
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAbsentListsFewNames(t *testing.T) {
	n := load(t, "edge")
	for _, name := range strings.Split("c d e f g h i j k l m n", " ") {
		var err error
		n, err = config.AddService(n, name, config.ServiceChange{VIP: address("192.0.2.80"),
			Port: pointer(uint16(name[0]))})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := config.DeleteService(n, "x")
	const want = `there is no service "x"; known: web, all, c, d, e, f, g, h, i, j and 4 more`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func lines(changes []config.Change) string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.String()
	}
	return strings.Join(texts, "\n")
}
