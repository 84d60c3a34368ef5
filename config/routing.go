package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Routing says which routes of other routing software count here: next hops over SRv6 become
// backends of an edge's services, or the kernel forwards by them, with a shadow of what they were
// before.
type Routing struct {
	// nil: not received
	FPM  *FPM  `key:"fpm" change:"whole"`
	VRFs []VRF `key:"vrfs" item:"vrf %s"`
}

// FPM is where FRRouting's zebra tells its routes (module dplane_fpm_nl).
type FPM struct {
	// where the routing software connects to
	Listen netip.AddrPort `key:"listen" default:"[::1]:2620"`
	// after zebra connected, until what it has not told again is forgotten
	Settle time.Duration `key:"settle" default:"30s" range:"1s 720h"`
}

// VRF is a routing table whose routes count.
type VRF struct {
	// of the VRF, as ip link says
	Name   string      `key:"name"`
	Source RouteSource `key:"source"`
	// whose routes count, as the source numbers it; 0 with source bgp
	Table    int      `key:"table" as:"table" omit:"zero"`
	Datapath Datapath `key:"datapath"`
	// The rest is of datapath kernel.
	// table that is written
	Install int `key:"install" as:"table" omit:"zero"`
	// packets that come in by these meet Install first
	Interfaces []string `key:"interfaces" omit:"zero" style:"flow"`
	// parts of the flows, each of which changes its next hop alone; 0: as the source has it
	Buckets int       `key:"buckets" omit:"zero" range:"0 1024"`
	Shadow  ShadowVRF `key:"shadow" omit:"zero"`
}

// ShadowVRF is the table that holds what another one held before it changed.
type ShadowVRF struct {
	// number or name of the kernel's routing table
	Table int `key:"table" as:"table"`
	// to which hosts send strays
	SID netip.Addr `key:"sid" as:"sid"`
	// how long next hops stay; 0: until the next change
	Keep time.Duration `key:"keep"`
}

// RouteSource is who says what routes there are.
type RouteSource string

// The sources of routes.
const (
	SourceFPM    RouteSource = "fpm"    // FRRouting's zebra
	SourceKernel RouteSource = "kernel" // the kernel's tables, with the routes of all writers
	SourceBGP    RouteSource = "bgp"    // the node's own speaker
)

// Datapath is what forwards by routes.
type Datapath string

// The data paths.
const (
	WithEBPF   Datapath = "ebpf"   // the edge's programs: next hops are backends of its services
	WithKernel Datapath = "kernel" // the kernel's routing tables alone
)

const (
	mainTable = 254
	maxVRFs   = 64
)

// KernelVRFs lists those that the kernel forwards.
func (r *Routing) KernelVRFs() (list []VRF) {
	if r != nil {
		for _, v := range r.VRFs {
			if v.Datapath == WithKernel {
				list = append(list, v)
			}
		}
	}
	return list
}

// Tables lists the tables of a source whose routes count.
func (r *Routing) Tables(source RouteSource) (list []uint32) {
	if r != nil {
		for _, v := range r.VRFs {
			if v.Source == source && !slices.Contains(list, uint32(v.Table)) {
				list = append(list, uint32(v.Table))
			}
		}
	}
	slices.Sort(list)
	return list
}

// parseTable reads the number of a routing table, or main.
func parseTable(s string) (int, error) {
	if s == "main" {
		return mainTable, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 0 || n == math.MaxUint32 {
		return 0, invalid(fmt.Sprintf("%q is no routing table", s), "write its number, or main")
	}
	return int(n), nil
}

// setDatapaths says what forwards by VRFs that do not: the edge, if there is one.
func (r *Routing) setDatapaths(n *Node, given func(string) bool) {
	if r == nil {
		return
	}
	for i := range r.VRFs {
		if given(fmt.Sprintf("routing.vrfs[%d].datapath", i)) {
			continue
		}
		if r.VRFs[i].Datapath = WithKernel; n.Edge != nil {
			r.VRFs[i].Datapath = WithEBPF
		}
	}
}
