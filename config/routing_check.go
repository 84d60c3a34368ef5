package config

import (
	"fmt"
	"net/netip"
)

func (r *Routing) check(c *checker) {
	c.some("routing.vrfs", len(r.VRFs), "no VRF is given", `add "- {name: blue, source: fpm, table: 10}"`)
	c.count("routing.vrfs", "VRFs", len(r.VRFs), maxVRFs)
	names, tables, sids, interfaces := unique[string]{}, unique[int]{}, unique[netip.Addr]{},
		unique[string]{}
	for i, v := range r.VRFs {
		where := fmt.Sprintf("routing.vrfs[%d]", i)
		c.name(join(where, "name"), "VRF", v.Name)
		names.once(c, join(where, "name"), v.Name, renameOne, "VRF %q is given twice")
		c.routeSource(where, v, r)
		if v.Datapath == WithEBPF {
			c.ebpfVRF(where, v)
			continue
		}
		c.written(join(where, "install"), v.Name, v.Install, tables, r)
		c.written(join(where, "shadow.table"), v.Name, v.Shadow.Table, tables, r)
		c.shadowSID(join(where, "shadow.sid"), v, sids)
		for j, name := range v.Interfaces {
			at := fmt.Sprintf("%s.interfaces[%d]", where, j)
			c.interfaceName(at, name)
			if owner, taken := interfaces.add(name, v.Name); taken {
				c.conflict(at, fmt.Sprintf("interface %q is of VRF %s", name, owner),
					"give each interface to one VRF")
			}
		}
	}
}

// routeSource checks that routes can come from where a VRF says.
func (c *checker) routeSource(where string, v VRF, r *Routing) {
	switch {
	case v.Source == SourceFPM && r.FPM == nil:
		c.invalid(join(where, "source"),
			"source fpm needs an address at which zebra finds this node",
			`add "fpm: {listen: \"[::1]:2620\"}" to routing, and load zebra with -M dplane_fpm_nl`)
	case v.Source == SourceBGP && c.node.BGP == nil:
		c.invalid(join(where, "source"), "source bgp needs a BGP speaker",
			`add "bgp:", or write source: fpm or kernel`)
	case v.Source == SourceBGP && v.Datapath == WithEBPF:
		c.conflict(join(where, "datapath"),
			"an edge learns its backends from its own speaker without a VRF",
			"delete the VRF, or write datapath: kernel", join(where, "source"))
	}
	if v.Source == SourceBGP != (v.Table == 0) {
		if v.Table == 0 {
			c.invalid(join(where, "table"), fmt.Sprintf("VRF %s has no table", v.Name),
				"write the number of the table whose routes count, or main, where FRRouting has "+
					"those of its default VRF")
		} else {
			c.conflict(join(where, "table"), "the routes of BGP are in no table", "delete it",
				join(where, "source"))
		}
	}
}

func (c *checker) ebpfVRF(where string, v VRF) {
	if c.node.Edge == nil {
		c.invalid(join(where, "datapath"),
			"datapath ebpf needs an edge, whose services get the next hops as backends",
			`add "edge:", or write datapath: kernel`)
	}
	for _, key := range []struct {
		name  string
		given bool
	}{
		{"install", v.Install != 0}, {"interfaces", len(v.Interfaces) > 0},
		{"buckets", v.Buckets != 0},
		{"shadow", v.Shadow != ShadowVRF{}},
	} {
		if key.given {
			c.conflict(join(where, key.name),
				key.name+" is for datapath kernel: chains hold previous owners here",
				"delete it, or write datapath: kernel", join(where, "datapath"))
		}
	}
}

// written checks a table that is written. It is nobody else's.
func (c *checker) written(where, name string, table int, tables unique[int], r *Routing) {
	if table == 0 {
		c.invalid(where, fmt.Sprintf("VRF %s does not say which table is written", name),
			"write the number of a table that nobody else uses")
		return
	}
	if table >= 253 && table <= 255 {
		c.conflict(where, fmt.Sprintf("table %d is one of the kernel's own", table),
			"write the number of a table that nobody else uses")
	}
	if owner, taken := tables.add(table, where); taken {
		c.conflict(where, fmt.Sprintf("table %d is written twice", table),
			"give each its own table", owner)
	}
	for i, v := range r.VRFs {
		if v.Source == SourceKernel && v.Table == table {
			c.conflict(where, fmt.Sprintf("table %d is one that routes are read from", table),
				"give it another number",
				fmt.Sprintf("routing.vrfs[%d].table", i))
		}
	}
}

func (c *checker) shadowSID(where string, v VRF, sids unique[netip.Addr]) {
	if !v.Shadow.SID.Is6() || !plainUnicast(v.Shadow.SID) {
		c.invalid(where, fmt.Sprintf("VRF %s has no SID to which hosts send strays", v.Name),
			`add "shadow: {table: 101, sid: \"fcbb:bb00:d000::\"}", and the same SID as backup to the hosts' SIDs`)
		return
	}
	if owner, taken := sids.add(v.Shadow.SID, v.Name); taken {
		c.conflict(where, fmt.Sprintf("sid %s is of VRF %s", v.Shadow.SID, owner),
			"give each shadow its own SID")
	}
	if c.node.Edge != nil && c.node.Edge.Shadow.SID == v.Shadow.SID {
		c.conflict(where, fmt.Sprintf("sid %s is the one of edge.shadow", v.Shadow.SID),
			"give each shadow its own SID", "edge.shadow.sid")
	}
}
