package agent_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
	"sextant/agent/southbound/southboundtest"
	"sextant/packet/flow"
)

// script is a controller that does what a test says.
type script struct {
	southboundpb.UnimplementedSouthboundServer
	streams chan southboundpb.Southbound_FollowServer
	end     chan struct{}
}

func (s *script) Follow(stream southboundpb.Southbound_FollowServer) error {
	s.streams <- stream
	<-s.end
	return nil
}

// serveScript listens until the test ends.
func serveScript(t *testing.T, files southbound.Files) (*script, string) {
	t.Helper()
	config, err := files.Server()
	must(t, err)
	config.MinVersion = tls.VersionTLS13
	port, err := net.Listen("tcp", "[::1]:0")
	must(t, err)
	s := &script{streams: make(chan southboundpb.Southbound_FollowServer, 1),
		end: make(chan struct{})}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	southboundpb.RegisterSouthboundServer(server, s)
	go func() { _ = server.Serve(port) }()
	t.Cleanup(func() { close(s.end); server.Stop() })
	return s, port.Addr().String()
}

// receive waits for a message of the head-end.
func receive(t *testing.T, s southboundpb.Southbound_FollowServer) *southboundpb.FromHeadend {
	t.Helper()
	m, err := s.Recv()
	must(t, err)
	return m
}

// An agent whose node file names a controller sets and clears what the controller says, tells what
// it has, and keeps it when the controller is gone or the file names none any more.
func TestHeadendFollowsAController(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	files := southboundtest.NewAuthority(t, dir).Leaf(t, "both", netip.IPv6Loopback())
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600))
	controller, address := serveScript(t, files)
	plain := strings.Replace(routerText, "  source: fd00:5e::1\n",
		"  source: fd00:5e::1\n  flows: 1000\n", 1)
	text := strings.Replace(plain, "  flows: 1000\n", fmt.Sprintf(`  flows: 1000
  southbound:
    controllers: ["%s"]
    router: leaf1
    tokenFile: %[2]s/token
    tls: {ca: %[3]s, certificate: %[4]s, key: %[5]s}
`, address, dir, files.CA, files.Certificate, files.Key), 1)
	a := m.start(text)
	defer func() { a.stop() }()
	stream := <-controller.streams
	hello := receive(t, stream).GetHello()
	if hello.GetRouter() != "leaf1" || hello.GetCapacity() != 1000 {
		t.Errorf("%v", hello)
	}
	must(t, stream.Send(&southboundpb.FromController{Message: &southboundpb.FromController_Claim{
		Claim: &southboundpb.Claim{Epoch: 3, LeaseMs: 60000}}}))
	if standing := receive(t, stream).GetStanding(); !standing.GetFollowed() ||
		standing.GetEpoch() != 3 {
		t.Errorf("%v", standing)
	}
	one := southbound.Path{Hold: time.Hour,
		Flow: flow.Tuple{Src: netip.MustParseAddr("2001:db8:a::1"), SrcPort: 4000,
			Dst: netip.MustParseAddr("2001:db8:b::1"), DstPort: 443, Protocol: 6},
		Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:11::"),
			netip.MustParseAddr("fcbb:bb00:2:d6::")}}
	bad, other := one, one
	bad.Flow.SrcPort, bad.Segments = 4001, nil
	other.Flow.SrcPort = 4002
	change := &southboundpb.Change{Number: 9}
	for _, p := range []southbound.Path{one, bad, other} {
		change.Set = append(change.Set, southbound.PathMessage(p))
	}
	must(t, stream.Send(&southboundpb.FromController{
		Message: &southboundpb.FromController_Change{Change: change}}))
	applied := receive(t, stream).GetApplied()
	if applied.GetNumber() != 9 || len(applied.GetRefused()) != 1 ||
		applied.Refused[0].GetFlow().GetSourcePort() != 4001 {
		t.Errorf("%v", applied)
	}
	ports := func() (ports []uint16) {
		paths, err := a.FlowPaths(t.Context())
		must(t, err)
		for _, p := range paths {
			if !slices.Equal(p.Segments, one.Segments) {
				t.Errorf("%+v", p)
			}
			ports = append(ports, p.Flow.Source.Port())
		}
		return ports
	}
	if got := ports(); !slices.Equal(got, []uint16{4000, 4002}) {
		t.Errorf("flows with paths are those of ports %v", got)
	}
	must(t, stream.Send(&southboundpb.FromController{
		Message: &southboundpb.FromController_Change{Change: &southboundpb.Change{Number: 10,
			Clear: []*southboundpb.Flow{southbound.FlowMessage(other.Flow)}}}}))
	receive(t, stream)
	if got := ports(); !slices.Equal(got, []uint16{4000}) {
		t.Errorf("after one was cleared: %v", got)
	}
	if text := a.metrics(); !strings.Contains(text, `result="applied"} 3`) ||
		!strings.Contains(text, `result="refused"} 1`) {
		t.Errorf("metrics do not count 3 applied and 1 refused:\n%s", text)
	}
	controller.end <- struct{}{}
	stream = <-controller.streams // it connects again, and says what it has
	receive(t, stream)
	must(t, stream.Send(&southboundpb.FromController{Message: &southboundpb.FromController_Claim{
		Claim: &southboundpb.Claim{Epoch: 4, LeaseMs: 60000}}}))
	held := receive(t, stream).GetHeld()
	if len(held.GetPaths()) != 1 {
		t.Fatalf("%v", held)
	}
	if p, err := southbound.PathOf(held.GetPaths()[0]); err != nil || p.Flow != one.Flow ||
		!slices.Equal(p.Segments, one.Segments) || p.Hold > time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := a.Apply(t.Context(), "node.yaml", []byte(m.text(plain)), false)
	must(t, err)
	if got := ports(); !slices.Equal(got, []uint16{4000}) {
		t.Errorf("after the file names no controller: %v", got)
	}
}
