package headend

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/pathprobe"
	"sextant/config"
	"sextant/routing/bgp"
	"sextant/routing/linkstate"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

const (
	// topologyInterval is how often a topology's file is looked at.
	topologyInterval = time.Second
	// BGP tells a topology piece by piece: it is read when nothing came for settleQuiet, or
	// settleMost after the first piece.
	settleQuiet = 100 * time.Millisecond
	settleMost  = time.Second
)

// watchProtections begins to watch the topology, local links, and paths.
func (p *Protections) watchProtections() {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(p.Life)
	p.nudge, p.Seed = make(chan struct{}, 1), uint64(time.Now().UnixNano())
	go p.watchTopology(ctx, topologySource{
		name: p.Config.Topology, speaker: p.speaker(), frr: linkstate.FRR{Directory: p.Config.FRR,
			Block: p.Node.Domain.Block},
	}, p.nudge)
	go p.watchEgresses(ctx)
	if err := p.watchLinks(ctx); err != nil {
		p.Log.Warn("local links are not watched", "error", err)
	}
	if p.Config.Probe.Interval > 0 {
		if err := p.openProber(ctx); err != nil {
			p.Log.Error("paths are not probed: a failure is noticed when the topology "+
				"changes", "error", err)
		}
	}
}

func (p *Protections) openProber(ctx context.Context) error {
	c := p.Config.Probe
	prober, err := pathprobe.Open(pathprobe.Options{
		Own: p.Node.Headend.Source, Settings: pathprobe.Settings{Interval: c.Interval,
			Missed: c.Missed, Good: c.Good}, Log: p.Log,
	})
	if err != nil {
		return err
	}
	p.prober = prober
	go func() {
		for {
			select {
			case c := <-prober.Changes():
				_ = p.Do(ctx, func() { // else it is the end of the watch
					if p.prober == prober {
						p.listsProbed(c)
					}
				})
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// topologySource is where the topology comes from.
type topologySource struct {
	name    string // as in the node file
	speaker *bgp.Speaker
	frr     linkstate.FRR
}

// watchTopology reads the topology when it begins, and when it has changed.
func (p *Protections) watchTopology(ctx context.Context, source topologySource,
	nudge <-chan struct{}) {
	var due <-chan time.Time
	if source.name != config.FromBGP {
		tick := time.NewTicker(topologyInterval)
		defer tick.Stop()
		due = tick.C
	}
	var last []byte
	problem := ""
	for {
		n, err := source.read(ctx)
		switch {
		case err != nil && err.Error() != problem:
			problem = err.Error()
			_ = p.Do(ctx, func() { p.topologyFailed(err) })
		case err == nil && (problem != "" || !bytes.Equal(n.text, last)):
			last, problem = n.text, ""
			_ = p.Do(ctx, func() { p.topologyRead(n) })
		}
		select {
		case <-ctx.Done():
			return
		case <-nudge:
			settle(ctx, nudge)
		case <-due:
		}
	}
}

// settle waits until no more news comes.
func settle(ctx context.Context, news <-chan struct{}) {
	most := time.After(settleMost)
	for {
		select {
		case <-news:
		case <-time.After(settleQuiet):
			return
		case <-most:
			return
		case <-ctx.Done():
			return
		}
	}
}

// read reads a file, or what routers have told so far.
func (s topologySource) read(ctx context.Context) (*network, error) {
	var g *topology.Graph
	var err error
	switch s.name {
	case config.FromBGP:
		g, err = s.readBGP()
	case config.FromOSPF6:
		g, _, err = s.frr.OSPF6(ctx)
	case config.FromISIS:
		g, _, err = s.frr.ISIS(ctx)
	default:
		return ReadNetworkFile(s.name)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the topology: %w", err)
	case g.Nodes() == 0:
		return nil, fmt.Errorf("no router has told of itself by %s yet", s.name)
	}
	return &network{g, []byte(fingerprint(g))}, nil
}

// ReadNetworkFile reads a topology from a file.
func ReadNetworkFile(path string) (*network, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the topology: %w", err)
	}
	g, err := format.Read(format.File{Name: filepath.Base(path), Text: text}, format.Options{})
	return &network{g, text}, err
}

func (s topologySource) readBGP() (*topology.Graph, error) {
	if s.speaker == nil {
		return nil, fmt.Errorf("the node speaks no BGP; restart the agent if bgp is new in its " +
			"node file")
	}
	routes, err := s.speaker.LinkState()
	if err != nil {
		return nil, err
	}
	g, _, err := linkstate.Graph("bgp", routes)
	if err == nil && g.Nodes() == 0 {
		err = fmt.Errorf("no neighbor has told of a node by BGP-LS; let the families of one " +
			"include link-state")
	}
	return g, err
}

// fingerprint is all that a graph holds.
func fingerprint(g *topology.Graph) string {
	var b strings.Builder
	for v := range topology.Node(g.Nodes()) {
		fmt.Fprintln(&b, g.Node(v))
	}
	for e := range topology.Edge(g.Edges()) {
		fmt.Fprintln(&b, g.Edge(e))
	}
	return b.String()
}

func (p *Protections) topologyRead(n *network) {
	if p.Config == nil {
		return
	}
	p.Network, p.problem = n, ""
	p.Log.Info("topology", "source", p.Config.Topology, "nodes", n.graph.Nodes(), "edges",
		n.graph.Edges())
	p.networkChanged("another topology")
}

// topologyFailed keeps what was read before.
func (p *Protections) topologyFailed(err error) {
	p.problem = err.Error()
	p.Log.Warn("the topology can't be read; paths are computed on what was read before, "+
		"if anything", "error", err)
}

// topologyMayHaveChanged is told when BGP has news.
func (p *Protections) topologyMayHaveChanged() {
	if p.nudge != nil {
		select {
		case p.nudge <- struct{}{}:
		default: // it has been nudged already
		}
	}
}

// watchLinks follows the interfaces that the node file gives links of the topology.
func (p *Protections) watchLinks(ctx context.Context) error {
	links := p.Config.Links
	if len(links) == 0 {
		return nil
	}
	updates := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribe(updates, ctx.Done()); err != nil {
		return err
	}
	now, err := netlink.LinkList()
	if err != nil {
		return err
	}
	p.down = nil
	for _, l := range links {
		i := slices.IndexFunc(now,
			func(n netlink.Link) bool { return n.Attrs().Name == l.Interface })
		if i < 0 || !runs(now[i].Attrs()) {
			p.interfaceChanged(l.Interface, false)
		}
	}
	go func() {
		for u := range updates {
			_ = p.Do(ctx, func() { // else it is the end of the watch
				if p.Config != nil {
					p.interfaceChanged(u.Attrs().Name, u.Header.Type != unix.RTM_DELLINK &&
						runs(u.Attrs()))
				}
			})
		}
	}()
	return nil
}

// runs tells that an interface is up and so is what it is connected to.
func runs(l *netlink.LinkAttrs) bool {
	return l.RawFlags&unix.IFF_UP != 0 && l.RawFlags&unix.IFF_RUNNING != 0
}
