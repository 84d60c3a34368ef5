package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Routing says which routes of other routing software count here: next hops over SRv6 become backends of an edge's services, or the
// kernel forwards by them, with a shadow of what they were before.
type Routing struct {
	FPM  *FPM // nil: nobody is listened to
	VRFs []VRF
}

// FPM is where FRRouting's zebra tells its routes (module dplane_fpm_nl).
type FPM struct {
	Listen netip.AddrPort
	Settle time.Duration // after zebra connected, until what it has not told again is forgotten
}

// VRF is a routing table whose routes count.
type VRF struct {
	Name     string
	Source   RouteSource
	Table    int // whose routes count, as the source numbers it; 0 with source bgp
	Datapath Datapath
	// The rest is of datapath kernel.
	Install    int      // table that is written
	Interfaces []string // packets that come in by these meet Install first
	Buckets    int      // parts of the flows, each of which changes its next hop alone; 0: as the source has it
	Shadow     ShadowVRF
}

// ShadowVRF is the table that holds what another one held before it changed.
type ShadowVRF struct {
	Table int
	SID   netip.Addr    // to which hosts send strays
	Keep  time.Duration // how long next hops stay; 0: until the next change
}

// RouteSource is who says what routes there are.
type RouteSource string

// The sources of routes.
const (
	SourceFPM    RouteSource = "fpm"    // FRRouting's zebra
	SourceKernel RouteSource = "kernel" // the kernel's tables, whoever writes them
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
	defaultFPMPort = 2620
	defaultSettle  = 30 * time.Second
	mainTable      = 254
	maxVRFs        = 64
	maxVRFBuckets  = 1024
)

var (
	sources   = []RouteSource{SourceFPM, SourceKernel, SourceBGP}
	datapaths = []Datapath{WithEBPF, WithKernel}
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

func readRouting(v value, r *Routing) {
	v.mapping(
		field{"fpm", func(v value) { r.FPM = newFPM(); readFPM(v, r.FPM) }, ""},
		field{"vrfs", intoList(&r.VRFs, readVRF), `"vrfs:" and a list of names with source and table`},
	)
}

func newFPM() *FPM {
	return &FPM{Listen: netip.AddrPortFrom(netip.IPv6Loopback(), defaultFPMPort), Settle: defaultSettle}
}

func readFPM(v value, f *FPM) {
	v.mapping(
		field{"listen", into(&f.Listen, ParseListener), ""},
		field{"settle", into(&f.Settle, ParseWait), ""},
	)
}

func readVRF(v value) (f VRF) {
	v.mapping(
		field{"name", intoText(&f.Name), `"name: " and a name for the VRF`},
		field{"source", intoText(&f.Source), `"source: " and ` + alternatives(sources)},
		field{"table", into(&f.Table, parseTable), ""},
		field{"datapath", intoText(&f.Datapath), ""},
		field{"install", into(&f.Install, parseTable), ""},
		field{"interfaces", intoList(&f.Interfaces, readWord), ""},
		field{"buckets", intoNumber(&f.Buckets), ""},
		field{"shadow", func(v value) { readShadowVRF(v, &f.Shadow) }, ""},
	)
	return f
}

func readWord(v value) (s string) {
	intoText(&s)(v)
	return s
}

func readShadowVRF(v value, s *ShadowVRF) {
	v.mapping(
		field{"table", into(&s.Table, parseTable), `"table: " and the number of the shadow's table`},
		field{"sid", into(&s.SID, ParseSID), `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`},
		field{"keep", into(&s.Keep, ParseWait), ""},
	)
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
func (r *Routing) setDatapaths(n *Node, places map[string]Place) {
	if r == nil {
		return
	}
	for i := range r.VRFs {
		if _, given := places[fmt.Sprintf("routing.vrfs[%d].datapath", i)]; given {
			continue
		}
		if r.VRFs[i].Datapath = WithKernel; n.Edge != nil {
			r.VRFs[i].Datapath = WithEBPF
		}
	}
}
