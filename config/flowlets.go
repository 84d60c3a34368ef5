package config

import (
	"fmt"
	"net/netip"
	"time"
)

// Flowlets is the role of a host that sends its flows over several paths: a pause in a flow, after
// which nothing can be overtaken, lets it take another one.
type Flowlets struct {
	// by which packets of this machine leave, and answers arrive
	Interfaces []string `key:"interfaces" style:"flow" is:"place"`
	// outer source address
	Source netip.Addr `key:"source"`
	FlowletsOuter
	// a flow without a packet for so long may take another path; where paths are measured, at least
	// for as long as their round trips differ
	Gap time.Duration `key:"gap" default:"500us" range:"0s 10s"`
	// which path a flow then takes
	Choice FlowletChoice `key:"choice" default:"measured"`
	// how many flows are known at a time
	Flows int `key:"flows" default:"65536" range:"64 16777216"`
	// nil: paths are measured by the flows themselves alone
	Probe  *Probe         `key:"probe" change:"whole"`
	Groups []FlowletGroup `key:"groups" item:"flowlets %s"`
}

// Probes says whether paths are probed.
func (f *Flowlets) Probes() bool { return f.Probe != nil && f.Probe.Interval > 0 }

// FlowletsOuter is what the role writes into outer IPv6 headers. As with [EdgeOuter], the program
// has a field of the same name for each of these (struct flowlet_settings), and so does its model.
type FlowletsOuter struct {
	// of the outer header
	HopLimit int `key:"hopLimit" default:"64" range:"1 255"`
}

// FlowletChoice is how a path is chosen for a flowlet.
type FlowletChoice string

// The choices.
const (
	// the least octets under way, times delay, more where segments are lost
	Measured FlowletChoice = "measured"
	Random   FlowletChoice = "random" // any that is not down
	OfFlow   FlowletChoice = "flow"   // the same for the whole flow, by hash
)

// FlowletGroup is destinations with the paths that lead there.
type FlowletGroup struct {
	// in lists and metrics
	Name string `key:"name"`
	// prefixes of packets that take these paths
	Destinations []netip.Prefix `key:"destinations" as:"any" style:"flow"`
	Paths        []FlowletPath  `key:"paths" item:"+ : path %s"`
}

// FlowletPath is a path: a list of segments in one destination address, of which the last
// decapsulates.
type FlowletPath struct {
	// in lists and metrics
	Name string `key:"name"`
	// carrier of the path: its SIDs, up to that of the node that decapsulates
	SID netip.Addr `key:"sid" as:"sid"`
}

const (
	flowletGroupsMax       = 128  // of datapath's, which needs room for a change
	flowletPathsMax        = 16   // FLOWLET_PATHS_MAX
	flowletAllPathsMax     = 512  // of datapath's, which needs room for a change
	flowletDestinationsMax = 4096 // entries of flowlet_destinations
)

func (f *Flowlets) check(c *checker) {
	c.some("flowlets.interfaces", len(f.Interfaces), "there is none by which packets leave",
		"name those: ip link lists them")
	c.deviceNames("flowlets.interfaces", f.Interfaces, nil)
	if !f.Source.Is6() {
		c.invalid("flowlets.source", fmt.Sprintf("%s is no IPv6 address", f.Source),
			"write one of this machine, to which the SR domain has routes")
	}
	c.count("flowlets.groups", "groups", len(f.Groups), flowletGroupsMax)
	names, to, sids, all := unique[string]{}, unique[netip.Prefix]{}, unique[netip.Addr]{}, 0
	for i, g := range f.Groups {
		where := fmt.Sprintf("flowlets.groups[%d]", i)
		c.name(join(where, "name"), "group", g.Name)
		names.once(c, join(where, "name"), g.Name, "give one another name",
			"group %q is there twice")
		for j, prefix := range g.Destinations {
			at := fmt.Sprintf("%s.destinations[%d]", where, j)
			if other, taken := to.add(prefix.Masked(), g.Name); taken {
				c.conflict(at, fmt.Sprintf("group %s has %s, too", other, prefix),
					"take it out of one of them")
			}
			all++
		}
		c.flowletPaths(where, g, sids)
	}
	c.count("flowlets.groups", "destinations", all, flowletDestinationsMax)
	c.count("flowlets.groups", "paths", len(sids), flowletAllPathsMax)
}

func (c *checker) flowletPaths(where string, g FlowletGroup, sids unique[netip.Addr]) {
	c.count(join(where, "paths"), "paths", len(g.Paths), flowletPathsMax)
	names, own := unique[string]{}, unique[netip.Addr]{}
	for i, p := range g.Paths {
		at := fmt.Sprintf("%s.paths[%d]", where, i)
		c.name(join(at, "name"), "path", p.Name)
		names.once(c, join(at, "name"), p.Name, "give one another name", "path %q is there twice")
		if other, taken := own.add(p.SID, p.Name); taken {
			c.conflict(join(at, "sid"), fmt.Sprintf("path %s has it, too", other),
				"delete one of the two")
		}
		sids.add(p.SID, p.Name)
	}
}
