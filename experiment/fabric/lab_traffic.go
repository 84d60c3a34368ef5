package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sextant/experiment"
	"sextant/lab"
	"sextant/sim/packet"
	"sextant/te/topology"
)

// labPort is where the hosts of the lab take flows.
const labPort = 5001

// labHosts sends TCP flows between hosts of a lab.
type labHosts struct {
	*experiment.Arena
	names     []string // in the order of the simulator's hosts
	addresses []netip.Addr
	sent      atomic.Int64 // flows so far
	firstPort int          // of connections that stay
	reads     sync.Map     // by number of the flow: *flowRead
}

// flowRead is what the receiver of a flow has read.
type flowRead struct {
	bytes atomic.Int64
	done  chan time.Time // when the last byte was read
}

// flowSent is a flow from its sender's side.
type flowSent struct {
	*flowRead
	begun      time.Time
	connection net.Conn
}

// hostsOf are the hosts of a lab, which the simulator's network names.
func hostsOf(a *experiment.Arena, spec *lab.Spec, n *packet.Network) *labHosts {
	h := &labHosts{Arena: a}
	addresses := map[string]netip.Addr{}
	for _, node := range spec.Nodes {
		addresses[node.Name] = node.Addresses[0]
	}
	for _, v := range n.Hosts {
		name := n.Graph.Node(topology.Node(v)).Name
		h.names = append(h.names, name)
		h.addresses = append(h.addresses, addresses[name])
	}
	return h
}

// listen lets all hosts take flows until the context ends.
func (h *labHosts) listen(ctx context.Context) error {
	for i, name := range h.names {
		var listener net.Listener
		address := netip.AddrPortFrom(h.addresses[i], labPort)
		if err := h.Spaces[name].Do(func() (err error) {
			config := net.ListenConfig{KeepAlive: -1}
			config.SetMultipathTCP(false)
			listener, err = config.Listen(ctx, "tcp6", address.String())
			return err
		}); err != nil {
			return fmt.Errorf("take flows at %s: %w", name, err)
		}
		context.AfterFunc(ctx, func() { listener.Close() })
		go experiment.Accept(listener, func(conn net.Conn) { h.take(ctx, conn) })
	}
	return nil
}

// headBytes is how long the head of a flow is: its number and its size, each of 8 bytes.
const headBytes = 16

// take reads the flows of a connection, one after the other. One that breaks off is found by its
// sender.
func (h *labHosts) take(ctx context.Context, connection net.Conn) {
	context.AfterFunc(ctx, func() { connection.Close() })
	for h.takeOne(connection) {
	}
}

// takeOne reads a flow. It is false if there is none, or not all of it.
func (h *labHosts) takeOne(connection net.Conn) bool {
	var head [headBytes]byte
	if _, err := io.ReadFull(connection, head[:]); err != nil {
		return false
	}
	number, size := binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:])
	known, ok := h.reads.Load(int64(number))
	if !ok {
		return false
	}
	flow := known.(*flowRead)
	flow.bytes.Add(headBytes)
	chunk := make([]byte, 1<<16)
	for flow.bytes.Load() < int64(size) {
		n, err := connection.Read(chunk[:min(int64(len(chunk)), int64(size)-flow.bytes.Load())])
		flow.bytes.Add(int64(n))
		if err != nil {
			return false
		}
	}
	flow.done <- time.Now()
	return true
}

// connect opens a connection for flows between two hosts, from a port; 0: any.
func (h *labHosts) connect(ctx context.Context, control string, f packet.Flow, port int) (
	c net.Conn, err error) {
	dialer := net.Dialer{KeepAlive: -1, LocalAddr: &net.TCPAddr{Port: port}}
	dialer.Control = func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control)
		})
		return errors.Join(err, failed)
	}
	dialer.SetMultipathTCP(false)
	err = h.Spaces[h.names[f.Src]].Do(func() (err error) {
		c, err = dialer.DialContext(ctx, "tcp6",
			netip.AddrPortFrom(h.addresses[f.Dst], labPort).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("a flow from %s to %s: %w", h.names[f.Src], h.names[f.Dst], err)
	}
	return c, nil
}

// send begins a flow on a connection of its own.
func (h *labHosts) send(ctx context.Context, control string, f packet.Flow) (flowSent, error) {
	begun := time.Now()
	c, err := h.connect(ctx, control, f, 0)
	if err != nil {
		return flowSent{}, err
	}
	return h.sendBy(c, f, begun), nil
}

// sendBy begins a flow on a connection. What it sends is written in the background.
func (h *labHosts) sendBy(c net.Conn, f packet.Flow, begun time.Time) flowSent {
	number := h.sent.Add(1)
	flow := flowSent{flowRead: &flowRead{done: make(chan time.Time, 1)}, begun: begun,
		connection: c}
	h.reads.Store(number, flow.flowRead)
	head := binary.BigEndian.AppendUint64(nil, uint64(number))
	head = binary.BigEndian.AppendUint64(head, uint64(f.Bytes))
	go func() { // an error shows at the receiver, to which the flow does not end
		if f.Bytes < packet.Endless {
			_, _ = flow.connection.Write(append(head, make([]byte, f.Bytes-headBytes)...))
			return
		}
		_, err := flow.connection.Write(head)
		for chunk := make([]byte, 1<<20); err == nil; {
			_, err = flow.connection.Write(chunk)
		}
	}()
	return flow
}

// abort closes a connection with a reset, so that nothing of it is sent any more.
func (f flowSent) abort() {
	if tcp, ok := f.connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	f.connection.Close()
}

// settle waits until nothing is on the lab's links. It returns the most of the times within which
// 99 of 100 packets left them, after they should have.
func (h *labHosts) settle(ctx context.Context) (late time.Duration, err error) {
	for {
		states, err := h.LinkStates(ctx)
		if err != nil {
			return 0, err
		}
		underWay := 0
		for _, s := range states {
			for _, d := range s.Directions {
				underWay += d.UnderWay
				late = max(late, d.LateP99)
			}
		}
		if underWay == 0 {
			return late, nil
		}
		if err := sleepUntil(ctx, time.Now().Add(10*time.Millisecond)); err != nil {
			return 0, err
		}
	}
}

// flowPatience is how long a flow of the lab may take.
const flowPatience = time.Minute

// times plays flows in the lab, and returns how long each took until its receiver had read all, in
// ms.
func (h *labHosts) times(ctx context.Context, control string, flows []packet.Flow) ([]float64,
	error) {
	times := make([]float64, len(flows))
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i, f := range flows {
		group.Go(func() error {
			at := start.Add(time.Duration(f.Start / packet.Nanosecond))
			if err := sleepUntil(ctx, at); err != nil {
				return err
			}
			flow, err := h.send(ctx, control, f)
			if err != nil {
				return err
			}
			defer flow.abort()
			select {
			case end := <-flow.done:
				times[i] = end.Sub(flow.begun).Seconds() * 1000
				return nil
			case <-time.After(flowPatience):
				return fmt.Errorf("a flow of %d bytes from %s to %s did not end within %s",
					f.Bytes, h.names[f.Src], h.names[f.Dst], flowPatience)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	return times, group.Wait()
}

// goodputs are those of endless flows between two times, in Mbit/s.
func (h *labHosts) goodputs(ctx context.Context, control string, flows []packet.Flow, w window) (
	[]float64, error) {
	start := time.Now()
	var under []flowSent
	for _, f := range flows {
		flow, err := h.send(ctx, control, f)
		if err != nil {
			return nil, err
		}
		defer flow.abort()
		under = append(under, flow)
	}
	if err := sleepUntil(ctx, start.Add(w.after)); err != nil {
		return nil, err
	}
	rates, from := make([]float64, len(flows)), time.Now()
	for i := range flows {
		rates[i] = -float64(under[i].bytes.Load())
	}
	if err := sleepUntil(ctx, start.Add(w.after+w.lasts)); err != nil {
		return nil, err
	}
	lasted := time.Since(from).Seconds()
	for i := range flows {
		rates[i] = (rates[i] + float64(under[i].bytes.Load())) * 8 / 1e6 / lasted
	}
	return rates, nil
}

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}
