package config

import (
	"fmt"
	"net/netip"
	"slices"
)

// A telemetry sink is at TC. Programs at XDP of other roles, on the same interface, have packets
// before it, with their telemetry, and know no INT.

// runsOn reports whether a role, by its key, has an interface.
func (n *Node) runsOn(role, iface string) bool {
	return slices.ContainsFunc(n.Faces(),
		func(f Face) bool { return f.Role == role && f.Name == iface })
}

// takenAtXDP names the SID at which a program at XDP takes packets to a prefix, or to a part of it,
// that arrive at an interface; "": none does. Of role strays it takes strays alone; SIDs of its
// devices are the kernel's, and not known here.
func (n *Node) takenAtXDP(iface string, prefix netip.Prefix) (sid string, strays bool) {
	if n.runsOn("host", iface) {
		for i, s := range n.Host.SIDs {
			if s.Prefix.Overlaps(prefix) {
				return fmt.Sprintf("host.sids[%d]", i), false
			}
		}
	}
	if n.runsOn("merge", iface) {
		for i, s := range n.Merge.SIDs {
			if s.Prefix.Overlaps(prefix) {
				return fmt.Sprintf("merge.sids[%d]", i), false
			}
		}
	}
	if n.runsOn("strays", iface) {
		for i, v := range n.Strays.VRFs {
			if j := slices.IndexFunc(v.SIDs, prefix.Overlaps); j >= 0 {
				return fmt.Sprintf("strays.vrfs[%d].sids[%d]", i, j), true
			}
		}
	}
	return "", false
}

// telemetryReaches checks that packets come to the sink with their telemetry.
func (c *checker) telemetryReaches(s *TelemetrySink) {
	for i, prefix := range s.SIDs {
		for _, name := range s.Interfaces {
			owner, strays := c.node.takenAtXDP(name, prefix)
			if owner == "" {
				continue
			}
			what := fmt.Sprintf("packets to %s on interface %q are decapsulated at XDP (%s), "+
				"before the sink, which is at TC: those with INT are dropped, of others nothing "+
				"is reported", prefix, name, owner)
			if strays {
				what = fmt.Sprintf("strays to %s on interface %q are taken away at XDP (%s), "+
					"before the sink, which is at TC: those with INT are not, and the server "+
					"resets their connections", prefix, name, owner)
			}
			c.conflict(fmt.Sprintf("telemetry.sink.sids[%d]", i), what,
				"let the router before this machine be their sink", owner,
				"telemetry.sink.interfaces")
			break
		}
	}
}

// straysWarnings are of a sink behind role strays whose SIDs are a device's.
func (n *Node) straysWarnings() (list []string) {
	if n.Telemetry == nil || n.Telemetry.Sink == nil ||
		!slices.ContainsFunc(n.Telemetry.Sink.Interfaces,
			func(iface string) bool { return n.runsOn("strays", iface) }) {
		return nil
	}
	for i, v := range n.Strays.VRFs {
		if v.VRF == "" {
			continue
		}
		list = append(list, fmt.Sprintf("strays.vrfs[%d]: strays to SIDs of %s are taken away at "+
			"XDP, before the telemetry sink on the same interface: those with INT are not, and "+
			"servers reset their connections; let the router before this machine be the sink of "+
			"these SIDs", i, v.VRF))
	}
	return list
}
