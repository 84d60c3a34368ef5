package together

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller"
	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/lab/loadgen"
	"sextant/linux"
)

var fabricInLab = experiment.Experiment{
	Name:   "together-a-lab",
	Title:  "Servers and paths chosen in one decision, in the lab with the kernel's TCP",
	Source: "-",
	Shows: "Two racks of four servers of two cores, two paths of 12 Mbit/s to each " +
		"(examples/together.yaml). Other traffic takes 90 % of one of the paths to the second " +
		"rack; other work takes half of every fourth server. Requests of 3 kB, each on a " +
		"connection of its own, with random servers and paths, hunting alone, path control " +
		"alone, and both. The queues of the routers are read 50 times a second and told to a " +
		"controller, which the edge asks twice a second.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "5 min", Run: runFabricInLab,
}

// The load of the lab. Times of the CPU are shorter than in the simulator, so that a few minutes
// have enough requests.
const (
	labServers   = 8
	labService   = 50 * time.Millisecond
	labFormBytes = 3000                  // of a request
	labNews      = 20 * time.Millisecond // between two looks at the queues
	labRate      = 12e6                  // bits per second of a path
	otherPayload = 1200
	otherBytes   = 14 + 40 + 8 + otherPayload // of a frame
	otherPort    = 9
	workPort     = 8080 // of other work
)

// labSchemes are the first four of the simulator's.
var labSchemes = schemes[:4]

// way is how the edge leads packets to servers by a scheme.
func (s scheme) way() *config.Way {
	if s.steers {
		return &config.Way{By: config.ByTelemetry, Disjoint: 1, SIDs: 2}
	}
	return &config.Way{By: config.ByIGP, Disjoint: 2, SIDs: 2} // a flow takes either, by its hash
}

// fabricLab is the lab, with what loads it besides requests.
type fabricLab struct {
	*experiment.Arena
	warmUp, measured time.Duration
}

func runFabricInLab(ctx context.Context, r *experiment.Recorder) error {
	at := []float64{0.4, 0.5, 0.6}
	l := fabricLab{warmUp: 4 * time.Second, measured: 16 * time.Second}
	if r.Quick() {
		at, l.warmUp, l.measured = at[:1], time.Second/2, time.Second
	}
	var all []found
	err := experiment.InExample(ctx, "together-a-lab", examples.Together, nil, lab.Options{},
		func(ctx context.Context, a *experiment.Arena) (err error) {
			l.Arena = a
			all, err = l.play(ctx, r, at)
			return err
		})
	if err != nil {
		return err
	}
	reportFabricInLab(r, all)
	return nil
}

// play goes through all loads and schemes, beside other traffic.
func (l *fabricLab) play(ctx context.Context, r *experiment.Recorder,
	at []float64) (all []found, err error) {
	beside, stop := context.WithCancel(ctx)
	group, beside := errgroup.WithContext(beside)
	group.Go(func() error { return l.fill(beside) })
	group.Go(func() error { return l.tell(beside) })
	for _, load := range at {
		for _, s := range labSchemes {
			r.Progress("%s at %g", s.name, load)
			f, one := experiment.Part(r, fmt.Sprintf("%s-%g", s.name, load),
				func() (found, error) { return l.measure(beside, s, load) })
			if err = one; err != nil {
				break
			}
			all = append(all, f)
		}
	}
	stop()
	return all, errors.Join(group.Wait(), err)
}

// fill sends what other traffic has on one of the two paths to the second rack, until ctx ends.
func (l *fabricLab) fill(ctx context.Context) error {
	to := &net.UDPAddr{IP: net.ParseIP("fd00:5e::f2"), Port: otherPort}
	var sink, source *net.UDPConn
	err := errors.Join(
		l.Spaces["out2"].Do(func() (err error) {
			sink, err = net.ListenUDP("udp", to)
			return err
		}),
		l.Spaces["other"].Do(func() (err error) {
			source, err = net.DialUDP("udp", nil, to)
			return err
		}))
	if err != nil {
		return err
	}
	defer sink.Close()
	defer source.Close()
	chance, payload := rand.New(rand.NewPCG(21, 1)), make([]byte, otherPayload)
	gap := float64(otherBytes*8) / ((1 - crowded) * labRate) * float64(time.Second)
	for next := time.Now(); ctx.Err() == nil; {
		next = next.Add(time.Duration(chance.ExpFloat64() * gap))
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
		}
		if _, err := source.Write(payload); err != nil {
			return fmt.Errorf("fill a path: %w", err)
		}
	}
	return nil
}

// tell reads the queues of the routers and tells the controller, until ctx ends.
func (l *fabricLab) tell(ctx context.Context) error {
	edge, err := l.Node("edge")
	if err != nil {
		return err
	}
	client := controller.NewClient(filepath.Join(edge.Dir, "controller.sock"))
	for tick := time.NewTicker(labNews); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
		reports, err := l.queues()
		if err != nil {
			return err
		}
		if _, err = client.Report(ctx, reports); err != nil && ctx.Err() == nil {
			return fmt.Errorf("tell the controller of queues: %w", err)
		}
	}
}

// queues are what waits before the links to the racks.
func (l *fabricLab) queues() (reports []controller.Report, err error) {
	for _, router := range []string{"left", "right"} {
		err = l.Spaces[router].Do(func() error {
			for _, rack := range []string{"out1", "out2"} {
				link, err := netlink.LinkByName(rack)
				if err != nil {
					return linux.Failed(err, "find a link of %s", router)
				}
				list, err := netlink.QdiscList(link)
				if err != nil {
					return linux.Failed(err, "read a queue of %s", router)
				}
				for _, q := range list {
					if _, ok := q.(*netlink.Tbf); ok && q.Attrs().Statistics != nil {
						reports = append(reports, queueReport(router, rack,
							q.Attrs().Statistics.Queue.Backlog))
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// queueReport tells how much waits before a link.
func queueReport(router, rack string, bytes uint32) controller.Report {
	return controller.Report{
		Flow: api.Flow{Source: netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
			Destination: netip.MustParseAddrPort(webAddress), Protocol: config.TCP},
		Path:   []string{"edge", router, rack},
		Queues: []controller.QueueState{{From: router, To: rack, Bytes: int64(bytes)}},
	}
}

// measure loads the servers with requests, and some with other work.
func (l *fabricLab) measure(ctx context.Context, s scheme, load float64) (f found, err error) {
	if err := l.choose(ctx, s); err != nil {
		return f, err
	}
	var times []time.Duration
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range []int{1, 5} {
		group.Go(func() error {
			return l.load(ctx, nil, fmt.Sprintf("http://[fd00:5e::1:%d]:%d/", server, workPort),
				busy*cores, uint64(server))
		})
	}
	group.Go(func() error {
		return l.load(ctx, func(one loadgen.Response) {
			times = append(times, time.Duration(one.Ms*float64(time.Millisecond)))
			if one.Failure != "" {
				f.Fails++
			}
		}, "http://[2001:db8:80::80]/?form="+strings.Repeat("x", labFormBytes),
			load*labServers*cores, 0)
	})
	if err := group.Wait(); err != nil {
		return f, err
	}
	if len(times) == 0 {
		return f, errors.New("the load generator told of no request: let it run for longer")
	}
	t := summary(times)
	f.Scheme, f.Load, f.MeanMs, f.P99Ms, f.Requests = s.name, load, t.MeanMs, t.TailMs,
		uint64(t.Requests)
	return f, nil
}

// load sends requests that take so many cores.
func (l *fabricLab) load(ctx context.Context, each func(loadgen.Response), url string,
	cores float64, seed uint64) error {
	_, err := experiment.Load(ctx, l.Lab, "client", each, url,
		"--rate", strconv.FormatFloat(cores/labService.Seconds(), 'f', -1, 64),
		"--service", labService.String(), "--seed", strconv.FormatUint(21+seed, 10),
		"--warm-up", l.warmUp.String(), "--duration", l.measured.String(),
		"--sources", "2001:db8:c::/112")
	return err
}

// choose has the edge choose servers and paths by a scheme.
func (l *fabricLab) choose(ctx context.Context, s scheme) error {
	return l.Change(ctx, "edge", func(n *config.Node) {
		n.Edge.Services[0].Candidates, n.Edge.Services[0].Way = s.candidates, s.way()
	})
}

// reportFabricInLab writes what was found, by load and scheme.
func reportFabricInLab(r *experiment.Recorder, all []found) {
	t := experiment.Table{Name: "times", Title: "Response times over the load by requests",
		Columns: []string{"load", "scheme", "mean ms", "p99 ms", "requests", "failed"}}
	for _, f := range all {
		t.Add(f.Load, f.Scheme, fmt.Sprintf("%.1f", f.MeanMs), fmt.Sprintf("%.1f", f.P99Ms),
			f.Requests, f.Fails)
	}
	r.Table(t)
	for i := 0; i+len(labSchemes) <= len(all); i += len(labSchemes) {
		compare(r, all[i:i+len(labSchemes)])
	}
	r.Note("Requests take %v of CPU time in the mean: one that never waits has a 99th percentile "+
		"of %.0f ms. Those that failed count as long as they took; an answer is waited for 10 s.",
		labService, idleP99.Seconds()*1000*labService.Seconds()/service.Seconds())
}
