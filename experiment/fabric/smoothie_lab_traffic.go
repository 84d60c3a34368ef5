package fabric

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sextant/controller"
	"sextant/sim/packet"
)

const smoothieTCP = "cubic"

// smoothieFlows draws the flows that begin within a time, from clients to servers of other leaves:
// hosts are numbered clients first. The load is that of a port of each client's leaf.
func smoothieFlows(load float64, s span) (flows []packet.Flow, err error) {
	sizes, err := packet.NamedSizes("web-search")
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(labSeed, 3))
	p := packet.Poisson{Sizes: sizes, Until: packet.Time(s.begin) * packet.Nanosecond,
		Gap: sizes.Mean() / float64(s.divided) / (load * smoothieLeaves * portRate * packetBytes),
		Pair: func(r *rand.Rand) (src, dst int) {
			src = r.IntN(smoothieLeaves)
			return src, smoothieLeaves + (src+1+r.IntN(smoothieLeaves-1))%smoothieLeaves
		}}
	for f, ok := p.Next(r); ok; f, ok = p.Next(r) {
		f.Bytes = max(f.Bytes/s.divided, headBytes)
		flows = append(flows, f)
	}
	return flows, nil
}

// persistent are connections that stay: a flow takes one that rests between its ends, and opens one
// where none does.
type persistent struct {
	hosts *labHosts
	mutex sync.Mutex
	rest  map[[2]int][]net.Conn
	all   []net.Conn
}

// flowPorts is the port of the first flow, if it opens a connection. Others have those that follow,
// so that the same connections are hashed to the same paths by all settings. The next iteration has
// other ports, as the kernel would choose others: chance would hash all ten alike otherwise.
const flowPorts, iterationPorts = 20000, 1000

func (p *persistent) take(ctx context.Context, f packet.Flow, number int) (net.Conn, error) {
	ends := [2]int{f.Src, f.Dst}
	p.mutex.Lock()
	if rest := p.rest[ends]; len(rest) > 0 {
		p.rest[ends] = rest[:len(rest)-1]
		p.mutex.Unlock()
		return rest[len(rest)-1], nil
	}
	p.mutex.Unlock()
	c, err := p.hosts.connect(ctx, smoothieTCP, f, p.hosts.firstPort+number)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.all = append(p.all, c)
	return c, nil
}

func (p *persistent) leave(f packet.Flow, c net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	ends := [2]int{f.Src, f.Dst}
	p.rest[ends] = append(p.rest[ends], c)
}

// close ends all with a reset, so that nothing of them is sent any more.
func (p *persistent) close() {
	for _, c := range p.all {
		flowSent{connection: c}.abort()
	}
}

// carried is what became of a flow.
type carried struct {
	source     netip.AddrPort // of its connection; none if it got none
	begun, end time.Time      // end is when its receiver had all, or when it was waited for no more
	whole      bool
	rttMs      float64 // as TCP had it at the end
}

// lastWords is left to servers to end connections.
const lastWords = 200 * time.Millisecond

// carry plays flows until all have ended, or for so long.
func (h *labHosts) carry(ctx context.Context, flows []packet.Flow, s span,
	each func()) (all []carried, connections int, err error) {
	p := &persistent{hosts: h, rest: map[[2]int][]net.Conn{}}
	defer p.close()
	serves, over := context.WithCancel(ctx)
	defer over()
	if err := h.listen(serves); err != nil {
		return nil, 0, err
	}
	all = make([]carried, len(flows))
	start := time.Now()
	within, stop := context.WithDeadline(ctx, start.Add(s.lasts))
	defer stop()
	group, within := errgroup.WithContext(within)
	for i, f := range flows {
		group.Go(func() error {
			c := &all[i]
			c.begun = start.Add(time.Duration(f.Start / packet.Nanosecond))
			c.end = start.Add(s.lasts)
			if sleepUntil(within, c.begun) != nil {
				return ctx.Err()
			}
			conn, err := p.take(within, f, i)
			if err != nil {
				if within.Err() != nil && ctx.Err() == nil { // it was waited for no more
					return nil
				}
				return err
			}
			c.source = conn.LocalAddr().(*net.TCPAddr).AddrPort()
			flow := h.sendBy(conn, f, c.begun)
			select {
			case c.end = <-flow.done:
				c.whole, c.rttMs = true, smoothedRTT(conn)
				p.leave(f, conn)
				each()
			case <-within.Done():
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	over() // servers first, so that sinks see the end of both directions
	return all, len(p.all), sleepUntil(ctx, time.Now().Add(lastWords))
}

// smoothedRTT is the round-trip time of a connection as TCP has it, in ms; 0 if it is not known.
func smoothedRTT(c net.Conn) (ms float64) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // of a connection that was closed it is not known
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP,
			unix.TCP_INFO); err == nil {
			ms = float64(info.Rtt) / 1000
		}
	})
	return ms
}

// play makes a run of a setting.
func (l *smoothieLab) play(ctx context.Context, x setting, flows []packet.Flow, s span,
	each func()) (c cell, err error) {
	if err := l.tune(ctx, x); err != nil {
		return c, err
	}
	var all []carried
	var drops uint64
	err = l.controlled(ctx, x.controllerFile(l.dir), func(ctx context.Context) error {
		before, err := l.empty(ctx)
		if err != nil {
			return err
		}
		if all, c.Connections, err = l.carry(ctx, flows, s, each); err != nil {
			return err
		}
		status, err := l.control.Status(ctx)
		if err != nil {
			return err
		}
		if status.Telemetry != nil {
			c.Reports = status.Telemetry.Reports
		}
		drops, err = l.empty(ctx)
		drops -= before
		return err
	})
	if err != nil {
		return c, err
	}
	if err := l.forget(ctx); err != nil {
		return c, err
	}
	moved, err := l.moves()
	if err != nil {
		return c, err
	}
	c.sum(x, all, moved)
	c.Drops = drops
	return c, nil
}

// summed makes one cell of several iterations.
func summed(iterations []cell) cell {
	if len(iterations) == 1 {
		return iterations[0]
	}
	n := float64(len(iterations))
	all := cell{outcome: outcome{setting: iterations[0].setting}}
	for _, c := range iterations {
		all.MeanMs += c.MeanMs / n
		all.P99Ms += c.P99Ms / n
		all.Means = append(all.Means, c.MeanMs)
		all.Flows += c.Flows
		all.Unfinished += c.Unfinished
		all.Drops += c.Drops
		for len(all.Moves) < len(c.Moves) {
			all.Moves = append(all.Moves, 0)
		}
		for times, flows := range c.Moves {
			all.Moves[times] += flows
		}
		all.Idle += c.Idle
		all.Back += c.Back
		all.Connections += c.Connections
		all.RTTMs += c.RTTMs / n
		all.Reports += c.Reports
	}
	return all
}

// sum makes the outcome of what became of flows, and of decisions that moved them. A flow that did
// not end counts as long as it was waited for.
func (c *cell) sum(x setting, all []carried, moved []controller.Decision) {
	c.setting, c.Flows = x, len(all)
	moves := make([]int, len(all))
	for _, d := range moved {
		c.attribute(all, moves, d)
	}
	ended := 0
	for i, f := range all {
		c.Means = append(c.Means, f.end.Sub(f.begun).Seconds()*1000)
		if f.whole {
			ended++
			c.RTTMs += f.rttMs
		}
		for len(c.Moves) <= moves[i] {
			c.Moves = append(c.Moves, 0)
		}
		c.Moves[moves[i]]++
	}
	c.Unfinished = len(all) - ended
	c.RTTMs /= float64(max(1, ended))
	c.MeanMs, c.P99Ms = mean(c.Means), quantile(c.Means, 0.99)
}

// attribute counts a reroute for the flow that its connection had then.
func (c *cell) attribute(all []carried, moves []int, d controller.Decision) {
	if d.Flow.Source.Port() == labPort {
		c.Back++
		return
	}
	for i, f := range all {
		if f.source == d.Flow.Source && !d.At.Before(f.begun) && !d.At.After(f.end) {
			moves[i]++
			return
		}
	}
	c.Idle++
}
