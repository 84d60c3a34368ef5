package cflb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
	"sextant/packet/cflb"
)

// Of examples/parallel.yaml.
const (
	links      = 7
	key        = "000102030405060708090a0b0c0d0e0f"
	linkBits   = 20_000_000 // of each of the links, per second
	serverPort = 5001
)

var (
	client = netip.MustParseAddr("10.1.0.1")
	server = netip.MustParseAddrPort("10.2.0.1:5001")
)

// arena is the lab while it is up.
type arena struct {
	*experiment.Arena
	codec *cflb.Codec
	// which of the router's next hops lead by which of its interfaces, by index
	hops []string
	// where the frames of each of the router's interfaces arrive: node and interface
	arrive  map[string]lab.Endpoint
	news    *linux.MPTCP
	admits  *linux.MPTCP // at the server: while it is open, any number of subflows is admitted
	variant uint64       // of the last port: each is taken once
	read    atomic.Int64 // octets that the server's application has read
}

// Write counts what the server reads.
func (a *arena) Write(b []byte) (int, error) {
	a.read.Add(int64(len(b)))
	return len(b), nil
}

// parallel is the lab, with links as an experiment wants them.
func parallel(name string, change func(*lab.Spec)) (*lab.Spec, error) {
	spec, err := lab.Parse("parallel.yaml", examples.Parallel)
	if err != nil {
		return nil, err
	}
	spec.Name = name
	if change != nil {
		change(spec)
	}
	return spec, nil
}

// within builds the lab and calls body.
func within(ctx context.Context, spec *lab.Spec, body func(*arena) error) error {
	return experiment.InLab(ctx, spec, lab.Options{},
		func(ctx context.Context, l *experiment.Arena) error {
			a := &arena{Arena: l, arrive: map[string]lab.Endpoint{}}
			for _, link := range spec.Links {
				for side, end := range link.Ends {
					if end.Node == "near" {
						a.arrive[end.Interface] = link.Ends[1-side]
					}
				}
			}
			if err := a.open(ctx); err != nil {
				return err
			}
			defer a.news.Close()
			defer a.admits.Close()
			return body(a)
		})
}

func (a *arena) open(ctx context.Context) error {
	b, err := hex.DecodeString(key)
	if err != nil {
		return err
	}
	a.codec, err = cflb.New(cflb.Defaults(cflb.SourcePort, links, [cflb.KeyLength]byte(b)))
	if err != nil {
		return err
	}
	all, err := a.Agents["near"].NextHops(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Prefix.Contains(server.Addr()) {
			for _, hop := range one.Hops {
				a.hops = append(a.hops, hop.Interface)
			}
		}
	}
	if len(a.hops) != links {
		return fmt.Errorf("the router has %d next hops to the server, want %d", len(a.hops), links)
	}
	// The kernel's own path manager, at either end, lets a connection have eight subflows beside
	// the first.
	for node, into := range map[string]**linux.MPTCP{"client": &a.news, "server": &a.admits} {
		if err := a.Spaces[node].Do(func() (err error) {
			if err = linux.WriteSysctl("net.mptcp.pm_type", "1"); err != nil { // in user space
				return err
			}
			*into, err = linux.OpenMPTCP()
			return err
		}); err != nil {
			return err
		}
	}
	return a.serve(ctx)
}

// serve reads what connections send, at the server, until the context ends.
func (a *arena) serve(ctx context.Context) error {
	var listener net.Listener
	if err := a.Spaces["server"].Do(func() (err error) {
		config := net.ListenConfig{}
		config.SetMultipathTCP(true)
		listener, err = config.Listen(ctx, "tcp4", server.String())
		return err
	}); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go experiment.Accept(listener, func(conn net.Conn) { _, _ = io.Copy(a, conn) })
	return nil
}

// port is one that takes a next hop of the router, and was not taken before.
func (a *arena) port(hop int) (uint16, error) {
	path := []cflb.Hop{{HopLimit: 64, Index: hop}}
	ports, err := a.codec.Selectors(cflb.Packet{Src: client, Dst: server.Addr(),
		Protocol: unix.IPPROTO_TCP, HasPorts: true, DstPort: serverPort}, path, a.variant)
	if err != nil {
		return 0, err
	}
	for p := range ports {
		if a.variant++; p.SrcPort > 1024 {
			return p.SrcPort, nil
		}
	}
	return 0, cflb.ErrNoVariant
}

// carried is what came in from each of the router's links, in octets.
func (a *arena) carried() (map[string]uint64, error) {
	octets := map[string]uint64{}
	for near, end := range a.arrive {
		if err := a.Spaces[end.Node].Do(func() error {
			link, err := netlink.LinkByName(end.Interface)
			if err == nil {
				octets[near] = link.Attrs().Statistics.RxBytes
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return octets, nil
}

// quiet waits until nothing of a connection before is on the links.
func (a *arena) quiet(ctx context.Context) (map[string]uint64, error) {
	for {
		before, err := a.carried()
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, drained); err != nil {
			return nil, err
		}
		now, err := a.carried()
		if err != nil || maps.Equal(before, now) {
			return now, err
		}
	}
}

// anyHop asks for a subflow by a random port, as Multipath TCP does without controllable routers.
const anyHop = -1

// outcome is what a connection did.
type outcome struct {
	Links    int     // that carried a subflow's data
	Subflows int     // that the server has had
	Megabits float64 // per second, that the server's application read
}

// A link that carries a subflow takes part in the time of a connection with more than this, and one
// that carries acknowledgements with less.
const carriesOctets = 40_000

// watched says when goodput is measured: from so long after the connection on, and for how long.
type watched struct{ after, lasts time.Duration }

// drained is the time in which a queue that nothing enters sends something.
const drained = 60 * time.Millisecond

// connect opens a connection with a subflow by each of the hops, and sends for a time after they
// have begun.
func (a *arena) connect(ctx context.Context, hops []int, w watched) (o outcome, err error) {
	for _, news := range []*linux.MPTCP{a.news, a.admits} { // of the connection before
		if _, err := subflowsOf(news); err != nil {
			return o, err
		}
	}
	start, err := a.quiet(ctx)
	if err != nil {
		return o, err
	}
	connection, err := a.dial(ctx, hops[0])
	if err != nil {
		return o, err
	}
	defer func() { // with a reset, so that ports are free
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		connection.Close()
	}()
	go func() { // before the news: a connection is established once data is acknowledged
		chunk := make([]byte, 1<<16)
		for {
			if _, err := connection.Write(chunk); err != nil {
				return
			}
		}
	}()
	token, err := a.token(ctx)
	if err != nil {
		return o, err
	}
	for i, hop := range hops[1:] {
		id := uint8(1) // one for each local end, and a port that the kernel takes is none
		if hop != anyHop {
			id += uint8(i)
		}
		if err := a.subflow(token, id, hop); err != nil {
			return o, err
		}
	}
	return a.observe(ctx, start, w)
}

// observe looks at the links for a time.
func (a *arena) observe(ctx context.Context, start map[string]uint64, w watched) (o outcome,
	err error) {
	if err := pause(ctx, w.after); err != nil {
		return o, err
	}
	before, begun := a.read.Load(), time.Now()
	if err := pause(ctx, w.lasts); err != nil {
		return o, err
	}
	o.Megabits = float64(a.read.Load()-before) * 8 / 1e6 / time.Since(begun).Seconds()
	more, err := subflowsOf(a.admits)
	if err != nil {
		return o, err
	}
	o.Subflows = 1 + more
	after, err := a.carried()
	if err != nil {
		return o, err
	}
	for _, near := range a.hops {
		if after[near]-start[near] > carriesOctets {
			o.Links++
		}
	}
	return o, nil
}

// subflowsOf counts the subflows of which there is news now, beside the first of a connection.
func subflowsOf(news *linux.MPTCP) (n int, err error) {
	for {
		events, err := news.Next(0)
		if err != nil || len(events) == 0 {
			return n, err
		}
		for _, e := range events {
			if e.Kind == linux.MPTCPSubflowEstablished {
				n++
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// local is the client's end for a hop.
func (a *arena) local(hop int) (netip.AddrPort, error) {
	if hop == anyHop {
		return netip.AddrPortFrom(client, 0), nil
	}
	port, err := a.port(hop)
	return netip.AddrPortFrom(client, port), err
}

func (a *arena) dial(ctx context.Context, hop int) (connection net.Conn, err error) {
	local, err := a.local(hop)
	if err != nil {
		return nil, err
	}
	err = a.Spaces["client"].Do(func() (err error) {
		dialer := net.Dialer{Timeout: 10 * time.Second, LocalAddr: net.TCPAddrFromAddrPort(local)}
		dialer.SetMultipathTCP(true)
		connection, err = dialer.DialContext(ctx, "tcp4", server.String())
		return err
	})
	return connection, err
}

// token waits for the kernel's news of a new connection.
func (a *arena) token(ctx context.Context) (uint32, error) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		events, err := a.news.Next(100 * time.Millisecond)
		if err != nil {
			return 0, err
		}
		for _, e := range events {
			if e.Kind == linux.MPTCPEstablished && !e.Server {
				return e.Token, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("the connection does not speak MPTCP: net.mptcp.enabled has to be 1")
}

// portTries is how many ports a subflow may find taken.
const portTries = 16

func (a *arena) subflow(token uint32, id uint8, hop int) error {
	var failed error
	for range portTries {
		local, err := a.local(hop)
		if err != nil {
			return err
		}
		failed = a.Spaces["client"].Do(func() error {
			return linux.CreateSubflow(token, id, local, server, false)
		})
		if !errors.Is(failed, unix.EADDRINUSE) {
			return failed
		}
	}
	return failed
}
