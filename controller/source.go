package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"sextant/agent/network"
	"sextant/config"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
	"sextant/te/topology"
)

// defaultFRR is where FRRouting's daemons have their sockets.
const defaultFRR = "/run/frr"

// Speaker is a BGP speaker that learns the topology; nil: none runs. Its keys are those of a node
// file's bgp section, except for what is about services.
type Speaker struct{ *config.BGP }

// UnmarshalYAML reads the section as node files are read.
func (s *Speaker) UnmarshalYAML(section ast.Node) (err error) {
	s.BGP, err = config.ReadTopologySpeaker(section)
	return err
}

// follows tells whether the topology comes from routers, and changes.
func (c *Config) follows() bool {
	return slices.Contains([]string{config.FromBGP, config.FromOSPF6, config.FromISIS}, c.Topology)
}

func (c *Config) checkSource() error {
	_, err := c.checkBlock()
	switch speaks := c.BGP.BGP != nil; {
	case err != nil:
		return err
	case c.Topology == config.FromBGP && !speaks:
		return fmt.Errorf("topology: bgp: write a section bgp with asn, routerID and neighbors, " +
			"who tell of it by BGP-LS")
	case c.Topology != config.FromBGP && speaks:
		return fmt.Errorf("bgp: the topology is %s; write topology: bgp, or delete the section",
			c.Topology)
	}
	return nil
}

// checkBlock reads the block. FRRouting tells locators, of which those in the block are SIDs.
func (c *Config) checkBlock() (srv6.Block, error) {
	if c.Block == "" && (c.Topology == config.FromBGP || !c.follows()) {
		return srv6.Block{}, nil
	}
	block, err := srv6.ParseBlock(c.Block)
	if err != nil {
		return block, fmt.Errorf("block: %w; routers' SIDs are the locators of this block that "+
			"they announce", err)
	}
	return block, nil
}

// source is where the topology comes from.
type source struct {
	network.Source
	speaker *bgp.Speaker // nil: none is needed
}

func (o Options) openSource() (*source, error) {
	block, err := o.Config.checkBlock()
	if err != nil {
		return nil, err
	}
	s := &source{}
	if o.Config.Topology == config.FromBGP {
		s.speaker, err = bgp.Open(bgp.Options{BGP: o.Config.BGP.BGP, Log: o.Log})
		if err != nil {
			return nil, err
		}
		if err := s.speaker.SetNeighbors(o.Config.BGP.Neighbors); err != nil {
			s.close()
			return nil, err
		}
	}
	s.Source = network.SourceOf(&config.Network{Topology: o.Config.Topology, FRR: o.Config.FRR},
		block, s.speaker)
	return s, nil
}

func (s *source) close() {
	if s.speaker != nil {
		s.speaker.Close(false)
	}
}

// news yields a value when neighbors have told something; never without a speaker.
func (s *source) news() <-chan struct{} {
	if s.speaker == nil {
		return nil
	}
	return s.speaker.Changes()
}

// begin makes the controller. What routers tell may come after it has started: it waits for that.
func (s *source) begin(ctx context.Context, o Options) (*Controller, error) {
	if !o.Config.follows() {
		g, err := o.Open(o.Config.Topology)
		if err != nil {
			return nil, fmt.Errorf("topology: %w", err)
		}
		return newController(o, g)
	}
	return s.await(ctx, o)
}

// await makes the controller as soon as a topology is told that it can use.
func (s *source) await(ctx context.Context, o Options) (c *Controller, err error) {
	waiting, end := context.WithCancel(ctx)
	defer end()
	network.Watch(waiting, s.Source, s.news(), network.Watcher{
		Read: func(known *network.Known) {
			if c, err = newController(o, known.Graph); err == nil {
				end()
				return
			}
			o.Log.Warn("the topology can't be used; another one is waited for", "error", err)
		},
		Failed: func(err error) {
			o.Log.Info("the controller waits for its topology", "so far", err)
		},
	})
	return c, err
}

// watchTopology follows the topology until the context ends.
func (c *Controller) watchTopology(ctx context.Context, s *source) {
	network.Watch(ctx, s.Source, s.news(), network.Watcher{
		Read: func(known *network.Known) {
			_ = c.do(ctx, func() { c.followTopology(known.Graph, nil) }) // else it is the end
		},
		Failed: func(err error) {
			_ = c.do(ctx, func() { c.followTopology(nil, err) })
		},
	})
}

// present is the file without routers, their hosts and links that the topology does not have now,
// where routers tell it: they can fail, and return. It says what was left out.
func (c *Config) present(g *topology.Graph) (*Config, []string) {
	if !c.follows() {
		return c, nil
	}
	here, absent := *c, []string(nil)
	n := names{graph: g}
	here.Links = slices.DeleteFunc(slices.Clone(c.Links), func(q Queue) bool {
		_, err := n.links(q.From, q.To)
		if err != nil {
			absent = append(absent, fmt.Sprintf("links: %v", err))
		}
		return err != nil
	})
	here.Routers = slices.DeleteFunc(slices.Clone(c.Routers), func(r Router) bool {
		_, err := n.node(r.Name)
		if err != nil {
			absent = append(absent, fmt.Sprintf("routers: %v", err))
		}
		return err != nil
	})
	if c.CFLB != nil {
		source := *c.CFLB
		source.Hosts = slices.DeleteFunc(slices.Clone(source.Hosts), func(h Hosts) bool {
			_, err := n.node(h.Router)
			if err != nil {
				absent = append(absent, fmt.Sprintf("cflb.hosts: %v; hosts of %v get no paths", err,
					h.Prefix))
			}
			return err != nil
		})
		here.CFLB = &source
	}
	return &here, absent
}
