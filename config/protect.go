package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Protect is what a head-end needs to find paths for protections, and the protections themselves:
// traffic that is to travel over paths that share nothing.
type Protect struct {
	Network
	Probe Probe `key:"probe" present:"always" change:"whole"`
	// by which this machine knows at once that a link is down
	Links []LocalLink `key:"links" omit:"zero" item:"protect: interface %s"`
	// share of a link's capacity that protections may fill together
	BoundPermille int          `key:"bound" as:"share" default:"0.8" range:"0.001 1"`
	Protections   []Protection `key:"protections" omit:"zero" item:"protection %s"`
}

// Network is the topology on which paths are computed, and the place of this node in it.
type Network struct {
	// absolute path of a topology's file, read again when it changes, or one of the sources below
	Topology string `key:"topology"`
	// directory of the sockets of FRRouting's daemons, for those that it is the source of
	FRR string `key:"frr" default:"/run/frr"`
	// this node's name in the topology
	Node string `key:"node"`
}

// What stands for a topology that is no file.
const (
	FromBGP   = "bgp"   // what neighbors tell by BGP-LS
	FromOSPF6 = "ospf6" // what FRRouting's ospf6d on this machine knows by OSPFv3
	FromISIS  = "isis"  // what its isisd knows by IS-IS
)

// Probe says how paths are probed from the head-end. An interval of 0 is not at all.
type Probe struct {
	// from one probe of a path to the next one
	Interval time.Duration `key:"interval" default:"10ms" range:"1ms 10s" zero:"for no probes"`
	// intervals without a probe that comes back, after which a path is down
	Missed int `key:"missed" default:"3" range:"1 1000"`
	// probes that come back, after which it is up again
	Good int `key:"good" default:"10" range:"1 1000"`
}

// LocalLink says which link of the topology an interface of this machine is the near end of.
type LocalLink struct {
	// the link's end on this node
	Interface string `key:"interface"`
	// like "R1>R2"
	Link string `key:"link"`
}

// Protection is traffic with what is promised to it.
type Protection struct {
	// in lists, metrics and commands
	Name string `key:"name"`
	// node of the topology at which the traffic leaves
	To string `key:"to"`
	// SID there: End.MERGE, or where copies are not eliminated any that decapsulates
	Egress netip.Addr `key:"egress" as:"sid"`
	// SID there that decapsulates probes; the zero value: Egress
	ProbeSID netip.Addr `key:"probeSID" as:"sid" omit:"zero"`
	// where the egress's agent serves metrics, and tells what came by each path; the zero value:
	// not known
	Agent netip.AddrPort `key:"agent" omit:"zero"`
	// whose Policy is empty: one of them must match
	Matches []SteeringRule `key:"match" without:"policy"`
	// disjoint paths that each packet takes
	Copies int `key:"copies" default:"2" range:"1 6"`
	// further disjoint paths, for when one of those fails
	Spares int `key:"spares" omit:"zero" range:"0 6"`
	// what paths must not share: edge, link, node or srlg
	Disjoint string `key:"disjoint" default:"link" words:"edge link node srlg" what:"disjointness"`
	// the most SIDs of a list
	SIDs int `key:"sids" default:"4" range:"1 7"`
	// what a segment is: forced or adjacency
	Model string `key:"model" default:"adjacency" words:"adjacency forced"`
	// expected, of one copy; 0: not known
	RateKbps   int        `key:"rate" as:"rate" omit:"zero"`
	Redundancy Redundancy `key:"redundancy" default:"tlv"`
	// first of the ProtectionFlows flow ids that the egress knows the paths by; 0: chosen by the
	// agent
	Flow int `key:"flow" range:"1 1048568"`
	// drop while no path is up; else traffic is forwarded as if it were not protected
	DropIfInvalid bool `key:"dropIfInvalid" omit:"zero"`
}

// ProtectionFlows is how many flow ids a protection has, from its Flow on.
const ProtectionFlows = 8

// firstProtectionFlow is above those that policies get by themselves.
const firstProtectionFlow = 1 << 15

// Flows are the flow ids of a protection, for the merge section of its egress.
func (p Protection) Flows() (flows []int) {
	for i := range ProtectionFlows {
		flows = append(flows, p.Flow+i)
	}
	return flows
}

// InnerMTU is the length of the largest packet that any path of the protection carries through a
// domain, in bytes: a list that ends in an End.X has one SID more.
func (p Protection) InnerMTU(d Domain) int {
	return d.MTU - SegmentList{Segments: make([]netip.Addr, p.SIDs+1), Reduced: true,
		Redundancy: p.Redundancy}.HeaderBytes()
}

// NewProtection is a protection with defaults.
func NewProtection(name, to string, egress netip.Addr) Protection {
	p := fresh[Protection]()
	p.Name, p.To, p.Egress = name, to, egress
	return p
}

// numberProtections gives flow ids to protections that have none: the lowest that are free.
func numberProtections(list []Protection) {
	taken := map[int]bool{}
	for _, p := range list {
		if p.Flow != 0 {
			for _, f := range p.Flows() {
				taken[f] = true
			}
		}
	}
	for i := range list {
		for flow := firstProtectionFlow; list[i].Flow == 0; flow += ProtectionFlows {
			candidate := Protection{Flow: flow}
			if !slices.ContainsFunc(candidate.Flows(), func(f int) bool { return taken[f] }) {
				list[i].Flow = flow
				for _, f := range candidate.Flows() {
					taken[f] = true
				}
			}
		}
	}
}

// rateUnits are those of rates in node files, the longest first, in kbit/s.
var rateUnits = []struct {
	name string
	kbps int
}{{"Gbit", 1_000_000}, {"Mbit", 1_000}, {"kbit", 1}}

// ParseRate reads a rate like 10Mbit, in kbit/s; 0 is none.
func ParseRate(s string) (kbps int, err error) {
	problem := invalid(fmt.Sprintf("%q is no rate", s),
		"write a whole number with a unit, like 500kbit, 10Mbit or 1Gbit")
	if s == "0" {
		return 0, nil
	}
	for _, u := range rateUnits {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			n := 0
			if _, err := fmt.Sscanf(digits+" ", "%d ", &n); err != nil || fmt.Sprint(n) != digits ||
				n < 1 || n > maxRateKbps/u.kbps {
				return 0, problem
			}
			return n * u.kbps, nil
		}
	}
	return 0, problem
}

// FormatRate writes a rate as ParseRate reads it.
func FormatRate(kbps int) string {
	for _, u := range rateUnits {
		if kbps != 0 && kbps%u.kbps == 0 {
			return fmt.Sprintf("%d%s", kbps/u.kbps, u.name)
		}
	}
	return "0"
}

// AddProtection returns a copy of the node with one protection more, or a *Problem. A Flow of 0 is
// chosen.
func AddProtection(n *Node, p Protection) (*Node, error) {
	return n.changeProtect(func(s *Protect) error {
		if slices.ContainsFunc(s.Protections, func(o Protection) bool { return o.Name == p.Name }) {
			return exists("protection", p.Name)
		}
		s.Protections = append(s.Protections, p)
		numberProtections(s.Protections)
		return nil
	})
}

// DeleteProtection returns a copy of the node without a protection, or a *Problem.
func DeleteProtection(n *Node, name string) (*Node, error) {
	return n.changeProtect(func(s *Protect) error {
		return deleteNamed(&s.Protections, "protection", name,
			func(p Protection) string { return p.Name })
	})
}

func (n *Node) changeProtect(change func(*Protect) error) (*Node, error) {
	if n.Protect == nil {
		return nil, &Problem{
			Kind: ErrConflict, Text: fmt.Sprintf("node %q knows no topology", n.Name),
			Mend: `add "protect:" with topology and node to its node file and apply it`,
		}
	}
	return n.changed(func(c *Node) error { return change(c.Protect) })
}
