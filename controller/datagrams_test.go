package controller

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
)

// say begins a stream of router leaf1 with a hello.
func (l *southLab) say(address string,
	hello *southboundpb.Hello) southboundpb.Southbound_FollowClient {
	l.t.Helper()
	must := func(err error) {
		l.t.Helper()
		if err != nil {
			l.t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "ca.pem"))
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(filepath.Join(l.dir, "router.pem"),
		filepath.Join(l.dir, "router.key"))
	must(err)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})))
	must(err)
	l.t.Cleanup(func() { conn.Close() })
	stream, err := southboundpb.NewSouthboundClient(conn).Follow(metadata.AppendToOutgoingContext(
		context.Background(), "authorization", "Bearer one"))
	must(err)
	hello.Router = "leaf1"
	must(stream.Send(&southboundpb.FromHeadend{
		Message: &southboundpb.FromHeadend_Hello{Hello: hello}}))
	return stream
}

// A change comes as a datagram under the head-end's key, whether or not the stream is read, and
// again by the stream, the same; one answer is enough.
func TestChangesAsDatagrams(t *testing.T) {
	l, address := newSouthLab(t), freePort(t)
	c, stop := l.controller(address, 1, "queueBytes: 1000")
	defer stop()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	key := bytes.Repeat([]byte{7}, 16)
	stream := l.say(address, &southboundpb.Hello{Datagrams: &southboundpb.Datagrams{
		Port: uint32(socket.LocalAddr().(*net.UDPAddr).Port), Key: key}})
	if m, err := stream.Recv(); err != nil || m.GetClaim() == nil {
		t.Fatalf("%v, %v", m, err)
	}
	answer := func(m *southboundpb.FromHeadend) {
		t.Helper()
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	answer(&southboundpb.FromHeadend{Message: &southboundpb.FromHeadend_Standing{
		Standing: &southboundpb.Standing{Followed: true, Epoch: 1}}})
	await(t, "leaf1 follows", func() bool { return l.headEnd(c).Followed })
	seal, err := southbound.NewSeal(key)
	if err != nil {
		t.Fatal(err)
	}
	for port := uint16(1); port < 4; port++ {
		move(t, c, port)
		octets := make([]byte, 2000)
		if err := socket.SetReadDeadline(time.Now().Add(awaited)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(octets)
		if err != nil {
			t.Fatal(err)
		}
		change, err := seal.Open(octets[:n])
		if err != nil || len(change.GetSet()) != 1 || change.GetNumber() != uint64(port) {
			t.Fatalf("%v, %v", change, err)
		}
		answer(&southboundpb.FromHeadend{Message: &southboundpb.FromHeadend_Applied{
			Applied: &southboundpb.Applied{Number: change.GetNumber()}}})
		await(t, "the path is applied", func() bool {
			f, err := c.Flow(t.Context(), testFlow(port))
			return err == nil && f.State == pathApplied
		})
		var again *southboundpb.Change
		for again == nil {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			again = m.GetChange() // not a claim
		}
		if !proto.Equal(change, again) {
			t.Errorf("datagram %v, stream %v", change, again)
		}
	}
}

// A head-end that offers datagrams by what is no port or key is told so.
func TestDatagramsThatCannotBe(t *testing.T) {
	l, address := newSouthLab(t), freePort(t)
	_, stop := l.controller(address, 1, "queueBytes: 1000")
	defer stop()
	for _, offer := range []*southboundpb.Datagrams{{Port: 0, Key: make([]byte, 16)},
		{Port: 65536, Key: make([]byte, 16)}, {Port: 1, Key: make([]byte, 32)}, {Port: 1}} {
		stream := l.say(address, &southboundpb.Hello{Datagrams: offer})
		if m, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: got %v, %v", offer, m, err)
		}
	}
}
