package e2e_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/tsharktest"
)

// pathLab is the lab of paths.yaml, whose routers are Linux's own.
type pathLab struct {
	*agents
	accepted [2]atomic.Int64 // by server
	conns    []net.Conn
}

func upPaths(t *testing.T, encapsulation string) *pathLab {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile(filepath.Join("testdata", "paths.yaml"))
	must(t, err)
	p := &pathLab{agents: upText(t, "paths.yaml",
		strings.Replace(string(text), "ENCAPSULATION", encapsulation, 1))}
	for router, end := range map[string][2]string{"left": {"a1", "in"}, "right": {"a2", "in"},
		"out": {"a3", "left"}} {
		p.on(router, "ip", "-6", "route", "replace", "fcbb:bb00:"+end[0]+"::/48", "encap",
			"seg6local", "action", "End", "flavors", "next-csid", "lblen", "32", "nflen", "16",
			"dev", end[1])
	}
	for i := range p.accepted {
		serveWords(t, p.lab, server(i+1), echoAddress, func(net.Conn) { p.accepted[i].Add(1) })
	}
	p.ready()
	return p
}

// open opens connections that stay open until the end of the test.
func (p *pathLab) open(n int) {
	p.t.Helper()
	for range n {
		inside(p.t, p.lab, "client", func() error {
			conn, err := net.DialTimeout("tcp", echoAddress, patience)
			if err == nil {
				p.conns = append(p.conns, conn)
				p.t.Cleanup(func() { conn.Close() })
			}
			return err
		})
	}
}

// received is how many packets have come to a router on their way to the servers.
func (p *pathLab) received(router string) (packets uint64) {
	p.t.Helper()
	return p.receivedBy(router, "in")
}

// take has all connections talk, and checks which routers their packets take. Each connection
// sends two packets a round: what it says, and that it has heard the answer.
func (p *pathLab) take(what string, routers ...string) {
	p.t.Helper()
	const rounds = 10
	before := map[string]uint64{"left": p.received("left"), "right": p.received("right")}
	for range rounds {
		for i, conn := range p.conns {
			if err := echo(conn); err != nil {
				p.t.Fatalf("%s: connection %d: %v", what, i, err)
			}
		}
	}
	said := uint64(rounds * len(p.conns))
	for router, packets := range before {
		got, want := p.received(router)-packets, uint64(0)
		for _, taken := range routers {
			if taken == router {
				want = said / uint64(len(routers)) / 4 // shares are right up to chance
			}
		}
		if want == 0 && got > said/20 || got < want { // routers also look for their neighbours
			p.t.Errorf("%s: %d of %d packets came to router %s, whose are %v", what, got, said,
				router, routers)
		}
	}
}

// lead gives the service and its second backend paths, with a depth; "": none.
func (p *pathLab) lead(depth int, service, second string) error {
	p.t.Helper()
	return p.configure(func(e *config.Edge) {
		s := &e.Services[0]
		s.Depth, s.Path, s.Backends[1].Path = depth, sids(service), sids(second)
	})
}

// configure applies the edge's node file after a change.
func (p *pathLab) configure(change func(*config.Edge)) error {
	p.t.Helper()
	_, err := p.client("edge").Apply(p.t.Context(), "node.yaml",
		p.changed("edge", func(n *config.Node) {
			change(n.Edge)
			if n.Edge.Encapsulation == config.Carrier {
				n.Domain.Overhead = 64 // as two carriers take
			}
		}), false)
	return err
}

func sids(ids string) (list []netip.Addr) {
	for _, id := range strings.Fields(ids) {
		list = append(list, netip.MustParseAddr("fcbb:bb00:"+id+"::"))
	}
	return list
}

// Packets to servers take the path that the node file says, over routers that are Linux's own; who
// refuses passes a connection on; a change of path breaks none.
func TestPathsToServers(t *testing.T) {
	for _, encapsulation := range []string{"carrier", "srh", "srh-reduced"} {
		t.Run(encapsulation, func(t *testing.T) {
			p := upPaths(t, encapsulation)
			p.open(10)
			p.take("by routing's own way", "left")
			must(t, p.lead(4, "a2", ""))
			p.take("led over the right router", "right")
			p.open(10)
			p.take("opened over the right router", "right")
			p.refused()
			must(t, p.lead(3, "a1 a3", "a2 a3"))
			p.take("a path for each server", "left", "right")
			p.explained(encapsulation)
			if encapsulation == "carrier" {
				must(t, p.lead(6, "a2 a3", ""))
				p.take("path and chain in a carrier each", "right")
				p.open(10)
				p.take("opened by two carriers", "right")
				must(t, p.lead(3, "a1 a3", "a2 a3"))
			} else {
				p.tooLong()
			}
			p.take("after a change that was refused", "left", "right")
			must(t, p.lead(6, "", ""))
			p.take("by routing's own way again", "left")
		})
	}
}

// refused checks that each server took some, and that some went on from one to the other.
func (p *pathLab) refused() {
	p.t.Helper()
	var refused uint64
	for i := range p.accepted {
		if p.accepted[i].Load() == 0 {
			p.t.Errorf("%s took no connection", server(i+1))
		}
		services, err := p.client(server(i+1)).Services(p.t.Context(), "", "")
		must(p.t, err)
		refused += services[0].Host.Refused
	}
	if refused == 0 {
		p.t.Error("no server refused a connection")
	}
}

// explained checks that the header which explain names is in the packet.
func (p *pathLab) explained(encapsulation string) {
	p.t.Helper()
	var all []api.Explanation
	for port := uint16(4000); port < 4010; port++ {
		list, err := p.client("edge").Explain(p.t.Context(), api.Question{Flow: &api.Flow{
			Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:c::1"), port),
			Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
		must(p.t, err)
		all = append(all, list...)
		for _, e := range list {
			var bytes, names []string
			for _, h := range e.Header {
				bytes, names = append(bytes, h.Bytes), append(names, h.Role+h.Backend)
				if (h.Role == "path") != strings.HasPrefix(h.Does, "End:") {
					p.t.Errorf("port %d: %+v", port, h)
				}
			}
			want := map[bool]string{true: "[path path backendweb1 backendweb2]",
				false: "[path path backendweb2 backendweb1]"}[e.OfferedTo[0] == "web1"]
			if fmt.Sprint(names) != want || !strings.HasPrefix(e.Why, "led over fcbb:bb00:a") {
				p.t.Errorf("port %d: header %v, want %s: %s", port, names, want, e.Why)
			}
			if e.Packet == "opening" && fmt.Sprint(e.Trace.Opening) != fmt.Sprint(e.Path) {
				p.t.Errorf("port %d: traced as %v, sent as %v", port, e.Trace.Opening, e.Path)
			}
			address := strings.Join(bytes, "")
			if encapsulation != "carrier" {
				address = bytes[3] + bytes[2] + bytes[1] // the last comes first
			}
			if !strings.Contains(e.Frame, address) {
				p.t.Errorf("port %d: %v are not in %s", port, bytes, e.Frame)
			}
		}
	}
	p.dissected(encapsulation, all)
}

// dissected checks that Wireshark finds the segments which explain names, in their order, in the
// packets that leave.
func (p *pathLab) dissected(encapsulation string, all []api.Explanation) {
	p.t.Helper()
	var frames [][]byte
	for _, e := range all {
		frame, err := hex.DecodeString(e.Frame)
		must(p.t, err)
		frames = append(frames, frame)
	}
	lines := strings.Split(strings.TrimSpace(tsharktest.Read(p.t, frames, "-T", "fields",
		"-E", "separator=/s", "-E", "aggregator=,", "-e", "ipv6.dst", "-e",
		"ipv6.routing.srh.addr")), "\n")
	if len(lines) != len(all) {
		p.t.Fatalf("%d packets, and tshark has %d lines", len(all), len(lines))
	}
	for i, e := range all {
		destinations, segments, _ := strings.Cut(lines[i], " ")
		outer, _, _ := strings.Cut(destinations, ",")
		got := []string{outer}
		if segments != "" { // the last comes first; a reduced header leaves the first one out
			got = strings.Split(segments, ",")
			slices.Reverse(got)
			if encapsulation != "srh" {
				got = append([]string{outer}, got...)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(e.Path) || outer != e.Path[0].String() {
			p.t.Errorf("tshark finds %s to %v, and explain says %v: %s", outer, got, e.Path,
				lines[i])
		}
	}
}

// tooLong checks that what does not fit is refused, with the bytes.
func (p *pathLab) tooLong() {
	p.t.Helper()
	want := "take 32 + 96 = 128 bytes, and 96 are for SIDs"
	if err := p.lead(6, "a2 a3", ""); err == nil || !strings.Contains(err.Error(), want) {
		p.t.Errorf("a path that does not fit: %v, want %q", err, want)
	}
}
