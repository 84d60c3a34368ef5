package convert

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/config"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func edge(t *testing.T, r *Rules, sids string) *config.Node {
	t.Helper()
	m, err := ReadSIDs("map", sids)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.YAML(Node{Name: "edge1", Block: "fcbb:bb00::/32", Interface: "eth0",
		Infrastructure: "fd00:5e::/48", Source: "fd00:5e::e1", SecretFile: "/etc/sextant/secret",
		SIDs: m})
	if err != nil {
		t.Fatal(err)
	}
	n, err := config.Parse("converted", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return n
}

var formats = []struct {
	file string
	read func(string) (*Rules, error)
}{{"fleet.rules", IPVS}, {"keepalived.conf", Keepalived}, {"haproxy.cfg", HAProxy}}

// A fleet of 50 services, written down in three formats, is the same fleet in all of them.
func TestFleetIsTheSameInAllFormats(t *testing.T) {
	var first []string
	for _, f := range formats {
		r, err := f.read(read(t, f.file))
		if err != nil {
			t.Fatalf("%s: %v", f.file, err)
		}
		n := edge(t, r, read(t, "fleet.map"))
		var services []string
		for _, s := range n.Edge.Services {
			for _, b := range s.Backends {
				services = append(services, fmt.Sprintf("%s %s %s weight %d %s", s.Endpoint, b.Name,
					b.SID, b.Weight, b.State))
			}
		}
		if slices.Sort(services); len(n.Edge.Services) != 50 || len(services) < 150 {
			t.Errorf("%s has %d services with %d backends", f.file, len(n.Edge.Services),
				len(services))
		}
		if first == nil {
			first = services
		}
		if !slices.Equal(services, first) {
			t.Errorf("%s is\n%s\nnot\n%s", f.file, strings.Join(services, "\n"),
				strings.Join(first, "\n"))
		}
	}
}

// The endpoints and weights of the saved rules, read by their letters alone, are those converted.
func TestIPVSAgainstItsLines(t *testing.T) {
	r, err := IPVS(read(t, "fleet.rules"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(read(t, "fleet.rules")) {
		if w := strings.Fields(line); w[0] == "-a" {
			want[w[2]+" "+w[4]+" "+w[7]] = true
		}
	}
	got := 0
	for _, s := range r.Services {
		for _, server := range s.Servers {
			at := strings.TrimSuffix(s.Endpoint.String(), "/tcp")
			weight := server.Weight
			if server.Draining {
				weight = 0
			}
			if got++; !want[fmt.Sprintf("%s %s:%d %d", at, server.Address, server.Port, weight)] {
				t.Errorf("no line has %s %+v", at, server)
			}
		}
	}
	if got != len(want) {
		t.Errorf("%d real servers, of %d lines", got, len(want))
	}
}

// Health checks come along: kind, path, port and times.
func TestChecks(t *testing.T) {
	for _, f := range formats[1:] {
		r, err := f.read(read(t, f.file))
		if err != nil {
			t.Fatal(err)
		}
		n := edge(t, r, read(t, "fleet.map"))
		for _, s := range n.Edge.Services {
			c := s.Check
			http := s.Port == 80 || s.Port == 8080
			if c == nil || c.Interval != 5*time.Second || c.Timeout != 3*time.Second ||
				(c.Kind == config.CheckHTTP) != http || http && c.Path != "/health" ||
				http && c.Status.String() != "200" || (http || f.file == "haproxy.cfg") &&
				c.Fall != 3 {
				t.Errorf("%s: the check of %s is %+v", f.file, s.Endpoint, c)
			}
		}
	}
}

// What has no counterpart is noted with its line.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		read func(string) (*Rules, error)
		text string
		want []string
	}{
		{IPVS, "-A -t 192.0.2.1:80 -s wlc -p 300\n-a -t 192.0.2.1:80 -r 10.0.0.1:8080 -m -w 1 -x " +
			"100",
			[]string{"line 1: scheduler wlc", "line 1: persistence (300 s)", "line 2: the upper",
				"line 2: masquerading", "line 2: service tcp-192-0-2-1-80: server 10.0.0.1 " +
					"listens on port 8080"}},
		{IPVS, "-A -f 7 -s rr\n-A -u [2001:db8::1]:53 -s rr\n-a -u [2001:db8::1]:53 -r " +
			"[fd00::1]:53 -i",
			[]string{"line 1: a service by firewall mark"}},
		{Keepalived, "vrrp_instance A {\n}\nvirtual_server fwmark 3 {\n}\nvirtual_server " +
			"192.0.2.1 80 {\n" +
			"  sorry_server 10.0.0.9 80\n  real_server 10.0.0.1 80 {\n    MISC_CHECK {\n    }\n  " +
			"}\n}\n" +
			"include more.conf", []string{"line 1: vrrp_instance A is not needed",
			"line 12: include", "line 3: a firewall mark", "line 6: the sorry server",
			"line 8: MISC_CHECK"}},
		{Keepalived, "virtual_server_group G {\n  192.0.2.1 80\n  192.0.2.2 443\n}\n" +
			"virtual_server group G {\n real_server 10.0.0.1 80 {\n weight 1\n }\n}",
			[]string{"listens on port 80, but gets packets as clients sent them, to port 443"}},
		{HAProxy, "listen a\n mode http\n bind 192.0.2.1:80\nlisten b\n bind *:81\n bind " +
			"192.0.2.1:443 ssl crt x\n" +
			" bind 192.0.2.1:82,[2001:db8::1]:82\n option redis-check\n server s 10.0.0.1:82 " +
			"check backup send-proxy maxconn 9",
			[]string{"line 1: listen a is in mode http", "line 5: bind *:81",
				"line 6: bind with ssl",
				"line 8: option redis-check", "line 9: server s is a backup", "line 9: send-proxy",
				"line 9: maxconn 9"}},
	} {
		r, err := c.read(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		edge(t, r, "10.0.0.1 fcbb:bb00:1::\nfd00::1 fcbb:bb00:2:: six\n")
		for _, want := range c.want {
			if !slices.ContainsFunc(r.Notes,
				func(n Note) bool { return strings.Contains(n.String(), want) }) {
				t.Errorf("%q has no note %q: %v", c.text, want, r.Notes)
			}
		}
	}
}

// Wrong input is named with its line.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		read func(string) (*Rules, error)
		text string
		want string
	}{
		{IPVS, "-A -t 192.0.2.1:80\n-a -t 192.0.2.2:80 -r 10.0.0.1:80", "line 2: a real server of"},
		{IPVS, "-L -n", "line 1: unknown option"},
		{IPVS, "-A -t web:80", "line 1: \"web:80\" is no address"},
		{IPVS, "-A -t 192.0.2.1:80\n-a -t 192.0.2.1:80 -r 10.0.0.1:80 -w 70000", "out of range"},
		{Keepalived, "virtual_server 192.0.2.1 80 {\n", "line 1: the braces"},
		{Keepalived, "}\n", "line 1: a brace ends nothing"},
		{Keepalived, "virtual_server web 80 {\n}\n", "line 1: \"web\" is no IP address"},
		{HAProxy, "frontend a\n bind 192.0.2.1:80\n default_backend none",
			"line 3: there is no such"},
		{HAProxy, "listen a\n bind 192.0.2.1:80\n server s web:80", "line 3: server s"},
		{HAProxy, "listen a\n bind 192.0.2.1:80-90\n server s 10.0.0.1", "line 2: bind"},
	} {
		if _, err := c.read(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	for _, wrong := range []string{"10.0.0.1", "10.0.0.1 x", "x fcbb::",
		"10.0.0.1 fcbb:bb00:1::\n" +
			"10.0.0.1 fcbb:bb00:2::"} {
		if _, err := ReadSIDs("map", wrong); err == nil || !strings.Contains(err.Error(), "map:") {
			t.Errorf("map %q: %v", wrong, err)
		}
	}
	r, err := IPVS("-A -t 192.0.2.1:80\n-a -t 192.0.2.1:80 -r 10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.YAML(Node{}); err == nil || !strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("without its SID: %v", err)
	}
}

// A line may end behind any of its words.
func TestCutLines(t *testing.T) {
	for _, one := range formats {
		text, err := os.ReadFile("testdata/" + one.file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text[:min(len(text), 3000)]), "\n")
		for i, line := range lines {
			before, after := strings.Join(lines[:i], ""), "\n"+strings.Join(lines[i+1:], "")
			words := strings.SplitAfter(line, " ")
			for n := range words {
				cut := strings.Join(words[:n], "")
				for _, line := range []string{cut, "ipvsadm " + cut, cut + "{"} {
					if r, err := one.read(before + line + after); err == nil {
						_, _ = r.YAML(Node{})
					}
				}
			}
		}
	}
}

// Whatever is read, nothing panics, and what is accepted makes a node file or says why not.
func FuzzConvert(f *testing.F) {
	for _, one := range formats {
		text, err := os.ReadFile("testdata/" + one.file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text[:min(len(text), 2000)]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, one := range formats {
			if r, err := one.read(text); err == nil {
				_, _ = r.YAML(Node{})
			}
		}
	})
}
