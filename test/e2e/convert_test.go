package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/config/convert"
)

// fleetHosts are the machines of the fleet in this lab: each has the SIDs of every eighth real
// server.
const fleetHosts = 8

// fleetText is a lab for a converted node: a client, its edge, and hosts for its backends.
func fleetText(n *config.Node, state, secret string) string {
	var vips, services, sids []string
	for i, s := range n.Edge.Services {
		if vip := fmt.Sprintf("%q", s.VIP.String()); !slices.Contains(vips, vip) {
			vips = append(vips, vip)
		}
		// What a host can pass on it does, also to itself: several servers are on one host.
		services = append(services, fmt.Sprintf("{name: s%d, vip: %q, port: %d, "+
			"accept: {policy: static, threshold: 0}}", i, s.VIP.String(), s.Port))
	}
	for i := range 5 {
		sids = append(sids, fmt.Sprintf(`"fcbb:bb00:%x{i:x}::/48"`, i))
	}
	offers := make([]string, len(sids))
	for i, sid := range sids {
		offers[i] = "{prefix: " + sid + ", behavior: End.OFFER}"
	}
	return fmt.Sprintf(`name: NAME
topology:
  nodes:
    client: {addresses: ["2001:db8:c::1", "203.0.113.1"]}
    router: {addresses: ["fd00:5e::ff"]}
    edge:
      addresses: ["fd00:5e::e1", "203.0.113.225"] # checks of IPv4 services need one
      announce: [%[1]s]
      sextant:
        node: edge1
        domain: &domain {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
        secretFile: %[4]s
        state: %[5]s
        api: {socket: "{dir}/agent.sock"}
        edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1"}
    host:
      count: 8
      addresses: ["fd00:5e::1:{i:x}"]
      vips: [%[1]s]
      announce: [%[2]s]
      sextant:
        node: host{i}
        domain: *domain
        secretFile: %[4]s
        state: "{dir}/state"
        api: {socket: "{dir}/agent.sock"}
        host:
          interfaces: [{name: eth0}]
          cgroup: "{cgroup}"
          sids: [%[3]s]
          services: [%[6]s]
  links:
    - endpoints: ["client:eth0", "router:client"]
    - endpoints: ["edge:eth0", "router:edge"]
    - endpoints: ["host{i}:eth0", "router:host{i}"]
`, strings.Join(vips, ", "), strings.Join(sids, ", "), strings.Join(offers, ", "), secret, state,
		strings.Join(services, ", "))
}

// fleetSIDs is the map of the fleet's real servers: of 40 servers, eight by eight, the number
// within the eight is the machine.
func fleetSIDs(t *testing.T, folder string) map[netip.Addr]convert.SID {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "fleet.map"))
	must(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if word := strings.Fields(line); word[0] != "#" {
			n := len(lines)
			lines = append(lines, fmt.Sprintf("%s fcbb:bb00:%x%x:: %s", word[0], n/fleetHosts,
				n%fleetHosts+1, word[2]))
		}
	}
	sids, err := convert.ReadSIDs("map", strings.Join(lines, "\n"))
	must(t, err)
	return sids
}

// hostOf is the machine that has a backend's SID.
func hostOf(b config.Backend) string {
	return fmt.Sprintf("host%d", b.SID.As16()[5]&0xf)
}

// Fifty services of another load balancer's rules, converted, serve: whichever the format, each
// endpoint answers, from a host that the rules name and that is not draining, and its backends pass
// the checks that came along.
func TestConvertedRulesServe(t *testing.T) {
	needsRoot(t)
	const folder = "../../config/convert/testdata"
	dir := t.TempDir()
	secret, state := filepath.Join(dir, "secret"), filepath.Join(dir, "state")
	must(t, os.WriteFile(secret, []byte("41d7f0a96b3e85c2097ce1d4b8a35f6e\n"), 0o600))
	sids := fleetSIDs(t, folder)
	var a *agents
	for _, f := range []struct {
		file string
		read func(string) (*convert.Rules, error)
	}{{"fleet.rules", convert.IPVS}, {"keepalived.conf", convert.Keepalived},
		{"haproxy.cfg", convert.HAProxy}} {
		text, err := os.ReadFile(filepath.Join(folder, f.file))
		must(t, err)
		rules, err := f.read(string(text))
		must(t, err)
		text, err = rules.YAML(convert.Node{Name: "edge1", Block: "fcbb:bb00::/32",
			Interface: "eth0", Infrastructure: "fd00:5e::/48", Source: "fd00:5e::e1",
			SecretFile: secret, SIDs: sids})
		must(t, err)
		n, err := config.Parse(f.file, text)
		must(t, err)
		if a == nil {
			a = upText(t, "fleet.yaml", fleetText(n, state, secret))
			a.serveFleet(n)
		}
		socket := nodeOf(t, a.lab, "edge").Socket
		_, err = a.client("edge").Apply(t.Context(), f.file, fmt.Appendf(text,
			"state: %s\napi: {socket: %s}\n", state, socket), false)
		must(t, err)
		a.fleetServes(f.file, n)
	}
}

// serveFleet has each host answer at all ports of the services, by its name.
func (a *agents) serveFleet(n *config.Node) {
	a.t.Helper()
	ports := map[uint16]bool{}
	for _, s := range n.Edge.Services {
		ports[s.Port] = true
	}
	for i := range fleetHosts {
		name := fmt.Sprintf("host%d", i+1)
		server := &http.Server{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })}
		a.t.Cleanup(func() { server.Close() })
		for port := range ports {
			inside(a.t, a.lab, name, func() error {
				l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
				if err == nil {
					go server.Serve(l)
				}
				return err
			})
		}
	}
}

// fleetPorts is from where the client asks its first service; each of them has a port of its own,
// and is asked from there again and again.
const fleetPorts = 20000

// fleetServes asks each endpoint a few times, and looks at the checks. The server ends each
// connection, so that it is in TIME-WAIT when the next one comes from the same port.
func (a *agents) fleetServes(file string, n *config.Node) {
	a.t.Helper()
	if len(n.Edge.Services) != 50 {
		a.t.Fatalf("%s: %d services", file, len(n.Edge.Services))
	}
	ns := namespaceOf(a.t, a.lab, "client")
	defer ns.Close()
	checked, port := 0, 0
	reuse := func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}), err)
	}
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			failure := ns.Do(func() error {
				from := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, Control: reuse}
				for {
					conn, err = from.DialContext(ctx, network, address)
					if !errors.Is(err, unix.EADDRNOTAVAIL) {
						return err
					}
					time.Sleep(time.Millisecond) // the client's end of the one before is not gone
				}
			})
			return conn, failure
		}}}
	for i, s := range n.Edge.Services {
		port = fleetPorts + i
		var takes []string
		for _, b := range s.Backends {
			if b.State == config.Up {
				takes = append(takes, hostOf(b))
			}
		}
		for range 3 {
			r, err := c.Get("http://" + netip.AddrPortFrom(s.VIP, s.Port).String() + "/")
			if err != nil {
				a.t.Errorf("%s: %s: %v", file, s.Name, err)
				break
			}
			name, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || !slices.Contains(takes, string(name)) {
				a.t.Errorf("%s: %s is answered by %q, %v, not by one of %v", file, s.Name, name,
					err, takes)
			}
		}
		if s.Check != nil {
			checked += a.healthy(s)
		}
	}
	a.t.Logf("%s: 50 services serve, %d checked backends are healthy", file, checked)
}

// healthy waits until all backends of a service pass their checks.
func (a *agents) healthy(s config.Service) int {
	a.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		backends, err := a.client("edge").Backends(a.t.Context(), s.Name)
		must(a.t, err)
		passing := 0
		for _, b := range backends {
			if b.Health != nil && b.Health.Status == "healthy" {
				passing++
			}
		}
		if passing == len(s.Backends) {
			return passing
		}
		if time.Now().After(deadline) {
			status, err := a.client("edge").Status(a.t.Context())
			a.t.Fatalf("%s: %d of %d backends pass their checks: %+v; warnings %q, %v", s.Name,
				passing, len(s.Backends), backends[0].Health, status.Warnings, err)
		}
	}
}
