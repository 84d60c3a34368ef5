package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Protect is what a head-end needs to find paths for protections, and the protections themselves: traffic that is to travel over
// paths that share nothing.
type Protect struct {
	Topology      string // absolute path of a topology's file, read again when it changes, or one of the sources below
	FRR           string // directory of the sockets of FRRouting's daemons, for those that it is the source of
	Node          string // this node's name in the topology
	Probe         Probe
	Links         []LocalLink // by which this machine knows at once that a link is down
	BoundPermille int         // share of a link's capacity that protections may fill together
	Protections   []Protection
}

// What stands for a topology that is no file.
const (
	FromBGP   = "bgp"   // what neighbors tell by BGP-LS
	FromOSPF6 = "ospf6" // what FRRouting's ospf6d on this machine knows by OSPFv3
	FromISIS  = "isis"  // what its isisd knows by IS-IS
)

// defaultFRR is where Debian's FRRouting has its sockets.
const defaultFRR = "/run/frr"

// Probe says how paths are probed from the head-end. An interval of 0 is not at all.
type Probe struct {
	Interval time.Duration
	Missed   int // intervals without a probe that comes back, after which a path is down
	Good     int // probes that come back, after which it is up again
}

// LocalLink says which link of the topology an interface of this machine is the near end of.
type LocalLink struct {
	Interface string
	Link      string // like "R1>R2"
}

// Protection is traffic with what is promised to it.
type Protection struct {
	Name          string
	To            string         // node of the topology at which the traffic leaves
	Egress        netip.Addr     // SID there: End.MERGE, or where copies are not eliminated any that decapsulates
	ProbeSID      netip.Addr     // SID there that decapsulates probes; the zero value: Egress
	Agent         netip.AddrPort // where the egress's agent serves metrics, and tells what came by each path; the zero value: not known
	Matches       []SteeringRule // whose Policy is empty: one of them must match
	Copies        int
	Spares        int
	Disjoint      string // what paths must not share: edge, link, node or srlg
	SIDs          int    // the most SIDs of a list
	Model         string // what a segment is: forced or adjacency
	RateKbps      int    // expected, of one copy; 0: not known
	Redundancy    Redundancy
	Flow          int  // first of the ProtectionFlows flow ids that the egress knows the paths by; 0: chosen by the agent
	DropIfInvalid bool // drop while no path is up; else traffic is forwarded as if it were not protected
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

// InnerMTU is the length of the largest packet that any path of the protection carries through a domain, in bytes: a list that ends in
// an End.X has one SID more.
func (p Protection) InnerMTU(d Domain) int {
	return d.MTU - SegmentList{Segments: make([]netip.Addr, p.SIDs+1), Reduced: true, Redundancy: p.Redundancy}.HeaderBytes()
}

func newProtect() *Protect {
	return &Protect{FRR: defaultFRR, Probe: Probe{Interval: 10 * time.Millisecond, Missed: 3, Good: 10}, BoundPermille: 800}
}

// NewProtection is a protection with defaults.
func NewProtection(name, to string, egress netip.Addr) Protection {
	p := newProtection()
	p.Name, p.To, p.Egress = name, to, egress
	return p
}

func newProtection() Protection {
	return Protection{Copies: 2, Disjoint: "link", SIDs: 4, Model: "adjacency", Redundancy: NumberedInTLV}
}

func readProtect(v value, p *Protect) {
	v.mapping(
		field{"topology", intoText(&p.Topology), `"topology: " and the absolute path of a topology's file, or bgp, ospf6 or isis`},
		field{"frr", intoText(&p.FRR), ""},
		field{"node", intoText(&p.Node), `"node: " and this node's name in the topology`},
		field{"probe", func(v value) { readProbe(v, &p.Probe) }, ""},
		field{"links", intoList(&p.Links, readLocalLink), ""},
		field{"bound", into(&p.BoundPermille, ParsePermille), ""},
		field{"protections", intoList(&p.Protections, readProtection), ""},
	)
	numberProtections(p.Protections)
}

func readProbe(v value, p *Probe) {
	v.mapping(
		field{"interval", into(&p.Interval, ParseWait), ""},
		field{"missed", intoNumber(&p.Missed), ""},
		field{"good", intoNumber(&p.Good), ""},
	)
}

func readLocalLink(v value) (l LocalLink) {
	v.mapping(
		field{"interface", intoText(&l.Interface), `"interface: " and the name of a network interface`},
		field{"link", intoText(&l.Link), `"link: " and a link of the topology, like "R1>R2"`},
	)
	return l
}

func readProtection(v value) Protection {
	p := newProtection()
	v.mapping(
		field{"name", intoText(&p.Name), `"name: " and a name for the protection`},
		field{"to", intoText(&p.To), `"to: " and the node of the topology at which the traffic leaves`},
		field{"egress", into(&p.Egress, ParseSID), `"egress: " and the SID there that merges copies`},
		field{"probeSID", into(&p.ProbeSID, ParseSID), ""},
		field{"agent", into(&p.Agent, ParseListener), ""},
		field{"match", intoList(&p.Matches, readMatch), `"match:" and a list of destination, protocol and so on`},
		field{"copies", intoNumber(&p.Copies), ""},
		field{"spares", intoNumber(&p.Spares), ""},
		field{"disjoint", intoText(&p.Disjoint), ""},
		field{"sids", intoNumber(&p.SIDs), ""},
		field{"model", intoText(&p.Model), ""},
		field{"rate", into(&p.RateKbps, ParseRate), ""},
		field{"redundancy", intoText(&p.Redundancy), ""},
		field{"flow", intoNumber(&p.Flow), ""},
		field{"dropIfInvalid", into(&p.DropIfInvalid, parseBool), ""},
	)
	return p
}

// readMatch reads a rule that need not name its policy.
func readMatch(v value) SteeringRule {
	r := SteeringRule{DSCP: AnyDSCP}
	v.mapping(matchFields(&r)...)
	return r
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
	problem := invalid(fmt.Sprintf("%q is no rate", s), "write a whole number with a unit, like 500kbit, 10Mbit or 1Gbit")
	if s == "0" {
		return 0, nil
	}
	for _, u := range rateUnits {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			n := 0
			if _, err := fmt.Sscanf(digits+" ", "%d ", &n); err != nil || fmt.Sprint(n) != digits || n < 1 || n > maxRateKbps/u.kbps {
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

func (p *Protect) clone() *Protect {
	if p == nil {
		return nil
	}
	c := *p
	c.Links, c.Protections = slices.Clone(p.Links), slices.Clone(p.Protections)
	for i := range c.Protections {
		c.Protections[i].Matches = slices.Clone(c.Protections[i].Matches)
	}
	return &c
}

// AddProtection returns a copy of the node with one protection more, or a *Problem. A Flow of 0 is chosen.
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
		return deleteNamed(&s.Protections, "protection", name, func(p Protection) string { return p.Name })
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
