package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
	"sextant/packet/quiclb"
)

const quicConnections = 12

// patient is for a machine that others use too: a connection waits while the others have their
// turns.
var patient = &quic.Config{MaxIdleTimeout: 10 * time.Minute, HandshakeIdleTimeout: patience}

var quicAddress = net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[2001:db8:80::80]:443"))

// Connections of a QUIC library go on while the client's address changes, and the pool, and both:
// the connection IDs lead to their servers, in each way in which a server ID can be written. Two
// servers refuse what another may take, so that handshakes are handed on.
func TestQUIC(t *testing.T) {
	needsRoot(t)
	key := make([]byte, quiclb.KeyLength)
	rand.Read(key)
	file := filepath.Join(t.TempDir(), "quic.key")
	if err := os.WriteFile(file, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/quic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a := upText(t, "quic.yaml", strings.ReplaceAll(string(text), "KEY", file))
	configs := []quiclb.Config{
		{Rotation: 0, ServerIDLength: 2, NonceLength: 6},
		{Rotation: 1, ServerIDLength: 4, NonceLength: 12, Key: key},
		{Rotation: 2, ServerIDLength: 3, NonceLength: 6, Key: key},
	}
	for i, c := range configs {
		serveQUIC(t, a.lab, i+1, c)
	}
	all := dialAll(t, a.lab, len(configs))
	talkAll := func(when string) {
		t.Helper()
		for i, c := range all {
			if err := c.talk(); err != nil {
				t.Fatalf("connection %d %s: %v", i, when, err)
			}
		}
	}
	talkAll("at first")
	moveAll(t, a.lab, all, "2001:db8:c::2")
	talkAll("from another address")
	setServer(t, a, "web1", config.Draining)
	setServer(t, a, "web2", config.Down)
	talkAll("in another pool")
	moveAll(t, a.lab, all, "2001:db8:c::1")
	talkAll("from another address, in another pool")
	if late := dialQUIC(t, a.lab, len(all)); late.owner != 3 {
		t.Errorf("a new connection is at server %d, which is drained or down", late.owner)
	}
	setServer(t, a, "web1", config.Up)
	setServer(t, a, "web2", config.Up)
	talkAll("in the pool of before")
}

// dialAll opens connections until each server has one.
func dialAll(t *testing.T, l *lab.Lab, servers int) (all []*quicClient) {
	t.Helper()
	owners := map[byte]int{}
	for len(all) < quicConnections || len(owners) < servers {
		if len(all) == 20*quicConnections {
			t.Fatalf("of %d connections, servers have %v: some have none", len(all), owners)
		}
		c := dialQUIC(t, l, len(all))
		all = append(all, c)
		owners[c.owner]++
	}
	t.Logf("connections by server: %v", owners)
	return all
}

func setServer(t *testing.T, a *agents, name string, state config.BackendState) {
	t.Helper()
	if _, err := a.client("edge").PutBackend(t.Context(), api.Update, "h3", name,
		api.BackendSpec{State: &state}); err != nil {
		t.Fatal(err)
	}
}

// routable makes connection IDs that name a server.
type routable struct {
	codec    *quiclb.Codec
	serverID []byte
	nonce    int
}

func (r routable) ConnectionIDLen() int { return r.codec.Length() }

func (r routable) GenerateConnectionID() (quic.ConnectionID, error) {
	nonce := make([]byte, r.nonce)
	rand.Read(nonce)
	cid, err := r.codec.Encode(r.serverID, nonce)
	return quic.ConnectionIDFromBytes(cid), err
}

// serveQUIC runs a server on a node until the end of the test. It says which it is, then what it is
// told.
func serveQUIC(t *testing.T, l *lab.Lab, number int, c quiclb.Config) {
	t.Helper()
	codec, err := quiclb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var socket *net.UDPConn
	inside(t, l, fmt.Sprintf("web%d", number), func() (err error) {
		socket, err = net.ListenUDP("udp", quicAddress)
		return err
	})
	transport := &quic.Transport{Conn: socket, ConnectionIDGenerator: routable{codec,
		c.ServerID(uint16(number)), c.NonceLength}}
	listener, err := transport.Listen(&tls.Config{Certificates: []tls.Certificate{selfSigned(t)},
		NextProtos: []string{"echo"}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); transport.Close(); socket.Close() })
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go echoQUIC(conn, byte(number))
		}
	}()
}

func echoQUIC(conn *quic.Conn, number byte) {
	stream, err := conn.AcceptStream(context.Background())
	if err != nil {
		return
	}
	defer stream.Close()
	if _, err := stream.Write([]byte{number}); err == nil {
		io.Copy(stream, stream)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// quicClient is a connection with one stream.
type quicClient struct {
	conn   *quic.Conn
	stream *quic.Stream
	owner  byte
	rounds int
}

// clientTransport is a socket of the client.
func clientTransport(t *testing.T, l *lab.Lab, address string) *quic.Transport {
	t.Helper()
	var socket *net.UDPConn
	inside(t, l, "client", func() (err error) {
		socket, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
		return err
	})
	transport := &quic.Transport{Conn: socket}
	t.Cleanup(func() { transport.Close(); socket.Close() })
	return transport
}

func dialQUIC(t *testing.T, l *lab.Lab, number int) *quicClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := clientTransport(t, l, "2001:db8:c::1").Dial(ctx, quicAddress,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"echo"}}, patient)
	if err != nil {
		t.Fatalf("connection %d: %v", number, err)
	}
	c := &quicClient{conn: conn}
	if c.stream, err = conn.OpenStreamSync(ctx); err != nil {
		t.Fatalf("connection %d: %v", number, err)
	}
	first := []byte("?")
	c.stream.SetDeadline(time.Now().Add(patience))
	if _, err := c.stream.Write(first); err != nil {
		t.Fatalf("connection %d: %v", number, err)
	}
	answer := make([]byte, 2)
	if _, err := io.ReadFull(c.stream, answer); err != nil || answer[1] != first[0] {
		t.Fatalf("connection %d: answered %q, %v", number, answer, err)
	}
	c.owner = answer[0]
	return c
}

// talk sends 200 kB and wants them back.
func (c *quicClient) talk() error {
	c.rounds++
	c.stream.SetDeadline(time.Now().Add(patience))
	sent := []byte(strings.Repeat(fmt.Sprintf("round %3d\n", c.rounds), 20_000))
	written := make(chan error, 1)
	go func() {
		_, err := c.stream.Write(sent)
		written <- err
	}()
	received := make([]byte, len(sent))
	if _, err := io.ReadFull(c.stream, received); err != nil {
		return fmt.Errorf("round %d: read from server %d: %w", c.rounds, c.owner, err)
	}
	if err := <-written; err != nil {
		return fmt.Errorf("round %d: write to server %d: %w", c.rounds, c.owner, err)
	}
	if string(received) != string(sent) {
		return fmt.Errorf("round %d: server %d said something else", c.rounds, c.owner)
	}
	return nil
}

// moveAll gives each connection a socket of another address and port.
func moveAll(t *testing.T, l *lab.Lab, all []*quicClient, address string) {
	t.Helper()
	for i, c := range all {
		path, err := c.conn.AddPath(clientTransport(t, l, address))
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err = path.Probe(ctx)
		cancel()
		if err != nil {
			t.Fatalf("connection %d, at server %d: probe the path from %s: %v", i, c.owner, address,
				err)
		}
		if err := path.Switch(); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}
