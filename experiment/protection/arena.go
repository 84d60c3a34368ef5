package protection

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
)

// Of examples/protection.yaml.
const (
	clientAddress = "2001:db8:a::1"
	serverAddress = "2001:db8:b::1"
	documentBytes = 102_400
)

// paths are the names of the routers in the middle, by path, and what the others call their links
// there.
var paths = [2]struct{ router, link, sid string }{{"p1", "l1", "fcbb:bb00:11::"},
	{"p2", "l2", "fcbb:bb00:12::"}}

// setting is a network and what its routers do.
type setting struct {
	Mode       mode
	Congestion string           // algorithm of TCP
	Delay      [2]time.Duration // of each path, in each direction
	Loss       [2]float64       // of each path, in each direction
	Seed       uint64           // of the losses
}

// arena is the lab while it is up.
type arena struct{ *experiment.Arena }

// within builds the lab of a setting and calls body, as experiment.InLab does.
func within(ctx context.Context, name string, s setting,
	body func(context.Context, *arena) error) error {
	return experiment.InExample(ctx, name, examples.Protection, s.change, lab.Options{},
		func(ctx context.Context, l *experiment.Arena) error {
			a := &arena{l}
			return a.steer(s, func() error { return body(ctx, a) })
		})
}

// change makes the lab that of a setting.
func (s setting) change(spec *lab.Spec) error {
	spec.Run = nil
	for i := range spec.Links {
		link := &spec.Links[i]
		for path, p := range paths {
			if link.Ends[0].Interface != p.link || link.Wire == "" {
				continue
			}
			link.Seed = s.Seed
			for side := range link.Impair {
				link.Impair[side].Delay, link.Impair[side].Loss = s.Delay[path], s.Loss[path]
			}
		}
	}
	for i := range spec.Nodes {
		s.prepare(&spec.Nodes[i])
	}
	return nil
}

// prepare makes a node's commands those of the setting.
func (s setting) prepare(node *lab.NodeSpec) {
	if s.Mode == onL2 && (node.Name == edges[0].name || node.Name == edges[1].name) {
		other := strings.NewReplacer(paths[0].sid, paths[1].sid, "dev "+paths[0].link,
			"dev "+paths[1].link)
		for i := range node.Exec {
			node.Exec[i].Shell = other.Replace(node.Exec[i].Shell)
		}
	}
	for name, peer := range map[string]string{"hosta": serverAddress, "hostb": clientAddress} {
		if node.Name == name && s.Congestion != "" {
			// The algorithm of a route, since a namespace may not choose that of all its
			// connections.
			route := fmt.Sprintf("ip -6 route replace $(ip -6 route show %s) congctl %s", peer,
				s.Congestion)
			node.Exec = append(node.Exec, lab.Command{Shell: route})
		}
	}
}
