package headend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/metrics"
	"sextant/agent/southbound"
	"sextant/config"
	"sextant/datapath"
	"sextant/packet/flow"
)

// controllers is the head-end's part in following controllers, which give flows paths.
type controllers struct {
	follower *southbound.Follower // nil: none is to be followed
	settings string               // that it has
}

// followControllers makes the follower what the configuration wants.
func (h *Room) followControllers() {
	var wanted *config.Southbound
	settings := ""
	if h.Runs != nil && h.Node.Headend != nil {
		wanted = h.Node.Headend.Southbound
		settings = fmt.Sprint(wanted, h.Node.Headend.Flows, h.Node.Headend.Spread)
	}
	if settings == h.controllers.settings {
		return
	}
	h.controllers.end()
	h.controllers.settings = settings
	if wanted == nil {
		return
	}
	router := cmp.Or(wanted.Router, h.Node.Name)
	h.controllers.follower = southbound.Follow(southbound.Options{
		Controllers: wanted.Controllers, Router: router, TokenFile: wanted.TokenFile,
		TLS: southbound.Files(wanted.TLS), Datagrams: wanted.Datagrams,
		Version: h.Version, Capacity: h.Node.Headend.Flows, Groups: groupCapacity(h.Node.Headend),
		Headend: flowTable{h}, Log: h.Log})
}

func (c *controllers) end() {
	if c.follower != nil {
		c.follower.Stop()
	}
	*c = controllers{}
}

func (c *controllers) links() []southbound.Link {
	if c.follower == nil {
		return nil
	}
	return c.follower.Links()
}

func (c *controllers) warnings() (warnings []string) {
	links := c.links()
	for _, l := range links {
		if !l.Connected && l.Problem != "" {
			warnings = append(warnings, fmt.Sprintf("no stream to controller %s: %s; flows keep "+
				"their paths until their time is over", l.Controller, l.Problem))
		}
	}
	followed := slices.ContainsFunc(links, func(l southbound.Link) bool { return l.Followed })
	if len(links) > len(warnings) && !followed {
		warnings = append(warnings, "no controller is followed: none that is connected has "+
			"claimed this head-end since the last one's lease began")
	}
	return warnings
}

// flowTable is the head-end's table of flows, for controllers.
type flowTable struct{ headend *Room }

// SetPath is what southbound.Headend says.
func (t flowTable) SetPath(ctx context.Context, p southbound.Path) (err error) {
	doErr := t.headend.Do(ctx, func() {
		err = t.headend.setFlowPath(p.Flow, p.Segments, p.Hold)
	})
	if doErr != nil {
		return doErr
	}
	return err
}

// ClearPath is what southbound.Headend says.
func (t flowTable) ClearPath(ctx context.Context, f flow.Tuple) (err error) {
	doErr := t.headend.Do(ctx, func() { err = t.headend.removeFlowPath(f) })
	if doErr != nil {
		return doErr
	}
	return err
}

// Filter is what southbound.Headend says.
func (t flowTable) Filter(ctx context.Context, socket *net.UDPConn,
	key flow.Secret) (f southbound.Filter, err error) {
	doErr := t.headend.Do(ctx, func() {
		if err = errNoHeadend; t.headend.Runs != nil {
			var changes *datapath.FlowChanges
			if changes, err = t.headend.Runs.Program.OpenFlowChanges(socket, key); err == nil {
				f = changes
			}
		}
	})
	return f, errors.Join(doErr, err)
}

// Held is what southbound.Headend says.
func (t flowTable) Held(ctx context.Context) (paths []southbound.Path, prefixes []netip.Prefix,
	err error) {
	doErr := t.headend.Do(ctx, func() {
		if t.headend.Runs == nil {
			err = errNoHeadend
			return
		}
		var flows []datapath.FlowPath
		var groups []datapath.Group
		if flows, err = t.headend.Runs.Program.Flows(); err != nil {
			return
		}
		for _, f := range flows {
			if f.Left >= time.Millisecond {
				paths = append(paths, southbound.Path{Flow: f.Flow, Segments: f.Header.Segments(),
					Hold: f.Left})
			}
		}
		groups, err = t.headend.Runs.Program.Groups()
		for _, g := range groups {
			prefixes = append(prefixes, g.Prefix)
		}
	})
	if doErr != nil {
		return nil, nil, doErr
	}
	return paths, prefixes, err
}

var (
	controllerConnected = metrics.Description("headend_controller_connected",
		"Whether there is a stream to a controller.", "controller")
	controllerFollowed = metrics.Description("headend_controller_followed",
		"Whether the head-end takes paths of flows from a controller.", "controller")
	controllerPaths = metrics.Description("headend_controller_paths_total",
		"Paths of flows that a controller has set or cleared.", "controller", "result")
	controllerDatagrams = metrics.Description("headend_controller_datagrams_total",
		"Datagrams with changes of paths, which come ahead of a controller's stream: applied by "+
			"the agent or, before it woke up, by the kernel; late, which the stream had brought; "+
			"or forged, which are not the controller's.", "controller", "result")
)

func (c *controllers) collect(out chan<- prometheus.Metric, links []southbound.Link) {
	for _, l := range links {
		metrics.Gauge(out, controllerConnected, metrics.OneIf(l.Connected), l.Controller)
		metrics.Gauge(out, controllerFollowed, metrics.OneIf(l.Followed), l.Controller)
		metrics.Counter(out, controllerPaths, l.Applied, l.Controller, "applied")
		metrics.Counter(out, controllerPaths, l.Refused, l.Controller, "refused")
		metrics.Counter(out, controllerDatagrams, l.Early, l.Controller, "applied")
		metrics.Counter(out, controllerDatagrams, l.Filtered, l.Controller, "kernel")
		metrics.Counter(out, controllerDatagrams, l.Late, l.Controller, "late")
		metrics.Counter(out, controllerDatagrams, l.Forged, l.Controller, "forged")
	}
}
