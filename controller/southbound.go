package controller

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
)

// Southbound is how head-ends get paths: they connect to the controller.
type Southbound struct {
	Listen netip.AddrPort `yaml:"listen"` // none if not set: decisions stay in the controller
	TLS    TLS            `yaml:"tls"`
	Tokens string         `yaml:"tokens"` // file of lines ROUTER TOKEN
	// Epoch decides between two controllers: head-ends follow the highest. 0: the time of the
	// start, so that the controller that started last is followed.
	Epoch uint64        `yaml:"epoch"`
	Lease time.Duration `yaml:"lease"` // for how long a silent controller is followed
	Hold  time.Duration `yaml:"hold"`  // for how long a flow keeps a path that nobody renews
	// Decap is the function at the egress that takes packets out of the list, such as End.DT46: 4
	// hexadecimal digits behind the egress router's locator.
	Decap string `yaml:"decap"`
}

// TLS are PEM files.
type TLS struct {
	CA          string `yaml:"ca"`
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// Router is what the topology does not say about a router.
type Router struct {
	Name string `yaml:"name"`
	// Egress is the SID by which it decapsulates.
	Egress netip.Addr `yaml:"egress"`
	// Node is its number in telemetry; 0: its place in the topology, from 1.
	Node uint32 `yaml:"node"`
	// CFLB is its number in role cflb, by which it hashes; 0: not known.
	CFLB uint32 `yaml:"cflb"`
	// Prefixes are the destinations behind it, to which head-ends spread flows that begin.
	Prefixes []netip.Prefix `yaml:"prefixes"`
}

const (
	defaultLease, defaultHold = 10 * time.Second, 10 * time.Minute
	leastLease                = 100 * time.Millisecond
	maxStreams                = 4 // of one connection
	keepAliveTime             = 10 * time.Second
	keepAliveTimeout          = 5 * time.Second
	keepAliveLeast            = 5 * time.Second // that a client may wait between two
)

func (s Southbound) serves() bool { return s.Listen.IsValid() }

func (s Southbound) check() error {
	if !s.serves() {
		return nil
	}
	for _, file := range []struct{ key, path string }{{"tokens", s.Tokens}, {"tls.ca", s.TLS.CA},
		{"tls.certificate", s.TLS.Certificate}, {"tls.key", s.TLS.Key}} {
		if file.path == "" {
			return fmt.Errorf("southbound.%s: name a file; head-ends and controller show "+
				"certificates to each other, and head-ends their tokens", file.key)
		}
	}
	switch {
	case s.Lease < leastLease:
		return fmt.Errorf("southbound.lease %v: write at least %v", s.Lease, leastLease)
	case s.Hold < time.Second || s.Hold > southbound.MaxHold:
		return fmt.Errorf("southbound.hold %v: write 1s to %v", s.Hold, southbound.MaxHold)
	case s.Hold < 2*s.Lease:
		return fmt.Errorf("southbound.hold %v: paths would end before another controller is "+
			"followed; write at least twice southbound.lease, which is %v", s.Hold, s.Lease)
	}
	return nil
}

// southServer admits head-ends.
type southServer struct {
	southboundpb.UnimplementedSouthboundServer
	controller *Controller
}

// listenSouthbound opens the port; nil if there is to be none.
func (c *Controller) listenSouthbound(ctx context.Context) (net.Listener, *grpc.Server, error) {
	s := c.options.Config.Southbound
	if !s.serves() {
		return nil, nil, nil
	}
	tls, err := southbound.Files(s.TLS).Server()
	if err != nil {
		return nil, nil, fmt.Errorf("southbound: %w", err)
	}
	if _, err := readTokens(s.Tokens); err != nil {
		return nil, nil, fmt.Errorf("southbound: %w", err)
	}
	port, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen.String())
	if err != nil {
		return nil, nil, fmt.Errorf("southbound: %w; choose another address for southbound.listen",
			err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(southbound.Window),
		grpc.StaticConnWindowSize(southbound.Window),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAliveTime,
			Timeout: keepAliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAliveLeast,
			PermitWithoutStream: true}))
	southboundpb.RegisterSouthboundServer(server, &southServer{controller: c})
	return port, server, nil
}

// admit lets a router in that shows its token.
func (s *southServer) admit(ctx context.Context, router string) error {
	tokens, err := readTokens(s.controller.options.Config.Southbound.Tokens)
	if err != nil {
		s.controller.options.Log.Warn("no head-end is admitted", "error", err)
		return status.Error(codes.Unavailable, "the controller can't read its tokens")
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	want, known := tokens[router]
	for _, text := range headers.Get("authorization") {
		token, bearer := strings.CutPrefix(text, "Bearer ")
		if known && bearer && subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 1 {
			return nil
		}
	}
	return status.Errorf(codes.PermissionDenied, "the token is not that of router %q", router)
}

// readTokens reads which router has which token. Empty lines, and those that begin with #, say
// nothing.
func readTokens(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	tokens := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("tokens %s, line %d: write a router and its token", file, n)
		}
		if _, twice := tokens[words[0]]; twice {
			return nil, fmt.Errorf("tokens %s, line %d: router %s has a token already", file, n,
				words[0])
		}
		tokens[words[0]] = words[1]
	}
	return tokens, lines.Err()
}
