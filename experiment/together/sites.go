package together

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
)

var twoSites = experiment.Experiment{
	Name:  "together-b",
	Title: "Two sites, one of which loses half its links, then half its servers", Source: "-",
	Shows: "Twice 5,000 TCP connections over two sites with an edge and four servers each (" +
		"examples/sites.yaml), through the edge of site 1. Then one of the two links of site 1 " +
		"fails, half of its servers are drained, routing moves the VIP to the edge of site 2, " +
		"and edge 1 is cut off. New connections are opened at each step. Each connection sends " +
		"and gets back an octet three times at each step; one that does not is broken.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "1 min", Run: runSites,
}

const (
	siteServers = 8
	echoAddress = "[2001:db8:80::80]:7"
	answerTime  = 30 * time.Second // that a connection has: TCP sends again what a link lost
	dialsAtOnce = 64
	// connections in a run: both ends of each are open files of one process
	atOnce = 5_000
	rounds = 3 // of octets in each step
)

// step is what one step found.
type step struct {
	What         string
	Connections  int // open
	Broken       int
	Opened       int // new ones, before the octets
	Site1, Site2 int64
	SlowestMs    float64 // answer
}

// sites is the lab with its connections.
type sites struct {
	*experiment.Arena
	accepted [siteServers]atomic.Int64
	conns    []net.Conn
	steps    []step
}

func runSites(ctx context.Context, r *experiment.Recorder) error {
	all := r.Requests(10_000)
	var steps []step
	for run := 0; all > 0; run++ {
		n := min(all, atOnce)
		all -= n
		found, err := experiment.Part(r, fmt.Sprintf("sites-%d", run), func() ([]step, error) {
			return oneRun(ctx, r, n)
		})
		if err != nil {
			return err
		}
		steps = append(steps, found...)
	}
	reportSites(r, steps)
	return nil
}

// oneRun has so many connections go through all steps.
func oneRun(ctx context.Context, r *experiment.Recorder, n int) (steps []step, err error) {
	err = experiment.InExample(ctx, "together-b", examples.Sites, nil, lab.Options{},
		func(ctx context.Context, a *experiment.Arena) error {
			s := &sites{Arena: a}
			err := s.play(ctx, r, n)
			steps = s.steps
			return err
		})
	return steps, err
}

// descriptors has the process open as many files as both ends of all connections take, for as long
// as the experiment runs.
func descriptors(connections int) (restore func(), err error) {
	const others = 1024
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, fmt.Errorf("read how many files may be open: %w", err)
	}
	wanted := uint64(2*connections + others)
	now := unix.Rlimit{Cur: max(before.Cur, wanted), Max: max(before.Max, wanted)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return nil, fmt.Errorf("let %d files be open, as both ends of %d connections take: %w; "+
			"ask for less with --requests", now.Cur, connections, err)
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }, nil // as it was
}

// play goes through all steps.
func (s *sites) play(ctx context.Context, r *experiment.Recorder, all int) error {
	restore, err := descriptors(all)
	if err != nil {
		return err
	}
	defer restore()
	end, err := s.serve()
	if err != nil {
		return err
	}
	defer end()
	defer func() {
		for _, c := range s.conns {
			c.Close()
		}
	}()
	for _, next := range []struct {
		what string
		open int
		do   func(context.Context) error
	}{
		{"all is well", all - 4*(all/20), func(context.Context) error { return s.anycast(1) }},
		{"one of two links of site 1 fails", all / 20,
			func(context.Context) error { // the VIP's route may be by this link
				return errors.Join(s.cut("core", "a"), s.anycast(1))
			}},
		{"half of the servers of site 1 are drained", all / 20,
			func(ctx context.Context) error { return s.drain(ctx, "web1", "web2") }},
		{"routing moves the VIP to the edge of site 2", all / 20,
			func(context.Context) error { return s.anycast(2) }},
		{"the edge of site 1 is gone", all / 20,
			func(context.Context) error { return s.cut("edge1", "eth0") }},
	} {
		r.Progress("%s", next.what)
		if err := next.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", next.what, err)
		}
		if err := s.step(next.what, next.open); err != nil {
			return fmt.Errorf("%s: %w", next.what, err)
		}
	}
	return nil
}

// serve has all servers send back what comes.
func (s *sites) serve() (end func(), err error) {
	var nodes []string
	for i := range siteServers {
		nodes = append(nodes, fmt.Sprintf("web%d", i+1))
	}
	return s.Serve(echoAddress, func(node string, conn net.Conn) {
		s.accepted[slices.Index(nodes, node)].Add(1)
		experiment.Echo(conn)
	}, nodes...)
}

// anycast has the router send packets to the VIP to the edge of a site, as routing does that knows
// the nearest.
func (s *sites) anycast(site int) error {
	return s.Spaces["core"].Do(func() error {
		to, err := netlink.RouteGet(net.ParseIP(fmt.Sprintf("fd00:5e::e%d", site)))
		if err != nil {
			return linux.Failed(err, "find the way to an edge")
		}
		return linux.Failed(netlink.RouteReplace(&netlink.Route{LinkIndex: to[0].LinkIndex,
			Gw: to[0].Gw, Dst: netlink.NewIPNet(net.ParseIP("2001:db8:80::80"))}),
			"lead the VIP to an edge")
	})
}

// cut takes an interface of a node down: its peer has no carrier any more.
func (s *sites) cut(node, port string) error {
	return s.Spaces[node].Do(func() error {
		link, err := netlink.LinkByName(port)
		if err != nil {
			return linux.Failed(err, "find the link to cut")
		}
		return linux.Failed(netlink.LinkSetDown(link), "cut a link")
	})
}

// drain has both edges drain servers.
func (s *sites) drain(ctx context.Context, servers ...string) error {
	state := config.Draining
	for _, edge := range []string{"edge1", "edge2"} {
		for _, server := range servers {
			if _, err := s.Agents[edge].PutBackend(ctx, api.Update, "echo", server,
				api.BackendSpec{State: &state}); err != nil {
				return err
			}
		}
	}
	return nil
}

// step opens connections, has all talk, and notes what came of it.
func (s *sites) step(what string, open int) error {
	before := s.taken()
	if err := s.open(open); err != nil {
		return err
	}
	found := step{What: what, Opened: open}
	var slowest time.Duration
	for range rounds {
		broken, took := s.talk()
		found.Broken += broken
		slowest = max(slowest, took)
	}
	after := s.taken()
	found.Connections, found.SlowestMs = len(s.conns), slowest.Seconds()*1000
	found.Site1, found.Site2 = after[0]-before[0], after[1]-before[1]
	s.steps = append(s.steps, found)
	return nil
}

// taken are the connections that the servers of each site have taken.
func (s *sites) taken() (taken [2]int64) {
	for i := range s.accepted {
		taken[i/(siteServers/2)] += s.accepted[i].Load()
	}
	return taken
}

// open opens connections that stay.
func (s *sites) open(n int) error {
	fresh, failed := make([]net.Conn, n), make([]error, n)
	inLanes(dialsAtOnce, n, func(i int) {
		failed[i] = s.Spaces["client"].Do(func() (err error) {
			dialer := net.Dialer{Timeout: answerTime, KeepAlive: -1}
			fresh[i], err = dialer.Dial("tcp", echoAddress)
			return err
		})
	})
	for _, c := range fresh {
		if c != nil {
			s.conns = append(s.conns, c)
		}
	}
	return errors.Join(failed...)
}

// talk has each connection send an octet and wait for it. Those that do not get it are broken, and
// closed.
func (s *sites) talk() (broken int, slowest time.Duration) {
	var mutex sync.Mutex
	alive := make([]net.Conn, 0, len(s.conns))
	inLanes(dialsAtOnce, len(s.conns), func(i int) {
		c, begun := s.conns[i], time.Now()
		_ = c.SetDeadline(begun.Add(answerTime)) // else the next call fails
		_, err := c.Write([]byte{7})
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
		mutex.Lock()
		defer mutex.Unlock()
		if slowest = max(slowest, time.Since(begun)); err != nil {
			broken++
			c.Close()
		} else {
			alive = append(alive, c)
		}
	})
	s.conns = alive
	return broken, slowest
}

// reportSites writes what the steps found.
func reportSites(r *experiment.Recorder, steps []step) {
	t := experiment.Table{Name: "steps", Title: "Connections over the steps",
		Columns: []string{"step", "opened", "by site 1", "by site 2", "open", "broken",
			"slowest answer ms"}}
	broken, opened := 0, 0
	for _, s := range steps {
		broken, opened = broken+s.Broken, opened+s.Opened
		t.Add(s.What, s.Opened, s.Site1, s.Site2, s.Connections, s.Broken,
			fmt.Sprintf("%.0f", s.SlowestMs))
	}
	r.Table(t)
	r.Compare(experiment.Comparison{What: "broken connections", Source: "-",
		Ours: fmt.Sprintf("%d of %d", broken, opened),
		Says: "failed links, drains and lost edges are to break none"})
	r.Note("Servers are drained, not killed: connections of a machine that dies die with it. The " +
		"slowest answers are those of packets that a failed link lost, which TCP sends again.")
}
