package headend

import (
	"context"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/network"
	"sextant/agent/pathprobe"
)

// watchProtections begins to watch the topology, local links, and paths.
func (p *Protections) watchProtections() {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(p.Life)
	p.nudge, p.Seed = make(chan struct{}, 1), uint64(time.Now().UnixNano())
	go network.Watch(ctx, network.SourceOf(&p.Config.Network, p.Node.Domain.Block, p.speaker()),
		p.nudge, network.Watcher{
			Read:   func(n *network.Known) { _ = p.Do(ctx, func() { p.topologyRead(n) }) },
			Failed: func(err error) { _ = p.Do(ctx, func() { p.topologyFailed(err) }) },
		})
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

func (p *Protections) topologyRead(n *network.Known) {
	if p.Config == nil {
		return
	}
	p.Network, p.problem = n, ""
	p.Log.Info("topology", "source", p.Config.Topology, "nodes", n.Graph.Nodes(), "edges",
		n.Graph.Edges())
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
