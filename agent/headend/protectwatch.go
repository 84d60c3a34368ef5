package headend

import (
	"context"
	"errors"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/network"
	"sextant/agent/pathprobe"
	"sextant/agent/role"
	"sextant/linux"
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
	if len(p.Config.Links) == 0 {
		return nil
	}
	news, err := linux.News(ctx, nil, unix.RTNLGRP_LINK)
	if err != nil {
		return err
	}
	p.down = nil
	p.linksChanged()
	role.Follow(ctx, &p.Loop, news, func(struct{}) {
		if p.Config != nil {
			p.linksChanged()
		}
	})
	return nil
}

// linksChanged looks at the interfaces of links. One that the kernel says nothing of is as it was.
func (p *Protections) linksChanged() {
	for _, l := range p.Config.Links {
		now, err := netlink.LinkByName(l.Interface)
		_, gone := errors.AsType[netlink.LinkNotFoundError](err)
		if err != nil && !gone {
			p.Log.Warn("a local link can't be looked at", "interface", l.Interface, "error", err)
			continue
		}
		p.interfaceChanged(l.Interface, !gone && runs(now.Attrs()))
	}
}

// runs tells that an interface is up and so is what it is connected to.
func runs(l *netlink.LinkAttrs) bool {
	return l.RawFlags&unix.IFF_UP != 0 && l.RawFlags&unix.IFF_RUNNING != 0
}
