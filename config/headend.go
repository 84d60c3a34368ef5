package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/packet/lists"
	"sextant/packet/srv6"
)

// Headend is the role that sends traffic along segment lists: the SR policies of RFC 9256 at their
// head-end.
type Headend struct {
	// by which forwarded traffic comes in
	Interfaces []XDPInterface `key:"interfaces" omit:"zero" preset:"side external" item:"headend interface %s"`
	// other interfaces on which the programs may send
	Uplinks []string `key:"uplinks" omit:"zero" style:"flow"`
	// interfaces by which packets of this machine itself leave that rules are to choose from
	Local []string `key:"local" omit:"zero" style:"flow" is:"place"`
	// outer source address
	Source netip.Addr `key:"source"`
	// of the outer header
	HopLimit int        `key:"hopLimit" default:"64" range:"1 255"`
	Policies []SRPolicy `key:"policies" omit:"zero" item:"policy %s"`
	// how many flows can have paths of their own, in front of the rules; 0: none
	Flows int `key:"flows" omit:"zero" range:"64 16777216" zero:"for none"`
	// how many flows remember the path that they chose when they began, of those to which a
	// controller gave weights; 0: rules and routes spread flows
	Spread int `key:"spread" omit:"zero" range:"64 16777216" zero:"for none"`
	// nil: none sets paths of flows but the API
	Southbound *Southbound `key:"southbound" change:"whole"`
	// the first that matches decides
	Rules []SteeringRule `key:"rules" omit:"zero" item:"rule %s" by:"place" change:"whole"`
}

// XDPInterface is an interface on which the program of a head-end or an egress runs.
type XDPInterface struct {
	// of the interface, as ip link says
	Name string `key:"name" is:"place"`
	// of a head-end's; those of an egress face the SR domain, and have none
	Side Side `key:"side" omit:"zero"`
	Mode Mode `key:"mode" default:"auto"`
}

// SRPolicy is a way for traffic, or several of which the best valid one is taken.
type SRPolicy struct {
	// in lists, metrics and rules
	Name string `key:"name"`
	// with Endpoint the policy's identity towards other systems; 0: none
	Color int `key:"color" omit:"zero" range:"0 4294967295"`
	// the zero value: none is said
	Endpoint netip.Addr `key:"endpoint" omit:"zero"`
	// DropIfInvalid drops traffic while no path is valid; else it is forwarded as if no rule had
	// chosen it.
	DropIfInvalid bool `key:"dropIfInvalid" omit:"zero"`
	// bytes of the largest inner packet that all lists carry; 0: what the domain's MTU leaves
	MTU   int             `key:"mtu" omit:"zero" range:"1280 65535" zero:""`
	Paths []CandidatePath `key:"paths" item:"+ : path %s"`
}

// CandidatePath is one way to do what a policy is for.
type CandidatePath struct {
	// in lists and metrics
	Name string `key:"name"`
	// the valid path of the highest one is active
	Preference int            `key:"preference" range:"0 4294967295"`
	Action     SteeringAction `key:"action"`
	// with fewer lists that are up the path is not valid
	LeastLists int           `key:"leastLists" default:"1"`
	Lists      []SegmentList `key:"lists" item:"+ : list %s"`
}

// SteeringAction is what a candidate path does with its segment lists.
type SteeringAction string

// The actions.
const (
	ActionPath        SteeringAction = "path"         // all packets take the first list that is up
	ActionSplitFlow   SteeringAction = "split-flow"   // each flow takes one, by weight
	ActionSplitPacket SteeringAction = "split-packet" // packets take them in turn, by weight
	ActionMirror      SteeringAction = "mirror"       // each packet takes all of them
)

// Redundancy is how packets are numbered, so that their copies can be told at the egress.
type Redundancy string

// The forms.
const (
	NotNumbered   Redundancy = "none"
	NumberedInTLV Redundancy = "tlv" // in a TLV of the segment routing header
	NumberedInSID Redundancy = "sid" // in the argument of the last segment
)

// SegmentList is a way through the network. Lists of one name in one policy are one list, and say
// the same but for their weight.
type SegmentList struct {
	// in lists and metrics
	Name string `key:"name"`
	// in the order of travel; the last decapsulates
	Segments []netip.Addr `key:"segments" as:"sid" style:"flow"`
	// without the first segment in the header
	Reduced bool `key:"reduced" omit:"zero"`
	// share of flows or packets, beside the other lists of the path
	Weight     int        `key:"weight" default:"1" range:"1 65535"`
	Redundancy Redundancy `key:"redundancy"`
	// by which the egress knows the path; 0: a number that the agent chooses and keeps
	Flow  int       `key:"flow" omit:"zero"`
	State ListState `key:"state" default:"up"`
}

// ListState says whether a segment list is used.
type ListState string

// The states of a list.
const (
	ListUp   ListState = "up"
	ListDown ListState = "down" // an operator took it out
)

// SteeringRule gives traffic to a policy.
type SteeringRule struct {
	// name of the policy that the packets take
	Policy string `key:"policy" omit:"zero"`
	// the zero prefix: any
	Source netip.Prefix `key:"source" as:"any" omit:"zero"`
	// prefix of the packets' destination
	Destination netip.Prefix `key:"destination" as:"any" omit:"zero"`
	// IP protocol number; 0: any
	Protocol         int       `key:"protocol" as:"protocol" omit:"zero"`
	SourcePorts      PortRange `key:"sourcePorts" omit:"zero"`
	DestinationPorts PortRange `key:"destinationPorts" omit:"zero"`
	// of the packets; -1: any
	DSCP int `key:"dscp" default:"-1" range:"0 63"`
}

// AnyDSCP as the DSCP of a rule stands for all.
const AnyDSCP = -1

// PortRange is a range of ports, both ends included. The zero value is all of them.
type PortRange struct{ First, Last uint16 }

// Merge is the role that takes protected traffic out of the SR domain: of the copies of a packet it
// lets one pass.
type Merge struct {
	Interfaces []XDPInterface `key:"interfaces" without:"side" item:"merge interface %s"`
	SIDs       []MergeSID     `key:"sids" item:"merge %s"`
}

// MergeSID is a SID with behaviour End.MERGE, and a protected flow that comes to it. One SID can be
// given several times, for several flows.
type MergeSID struct {
	// packets to SIDs in here end at this node
	Prefix netip.Prefix `key:"prefix"`
	// fwmark of decapsulated packets; 0: none
	Mark int        `key:"mark" omit:"zero" range:"0 4294967295"`
	Form Redundancy `key:"form" default:"tlv" words:"tlv sid"`
	// ids of the paths
	Flows []int `key:"flows" style:"flow"`
	// of each packet, so that the other paths are spares, of which nothing is expected; 0: one by
	// each path
	Copies int `key:"copies" omit:"zero"`
	// packets of the flow per second, at most, whose copies are told apart; with skew
	Rate int `key:"rate" omit:"zero" range:"1 1000000000"`
	// how much later than the first copy of a packet another one may come; with rate
	Skew time.Duration `key:"skew" range:"0s 1m"`
	// binary logarithm of how many packets of a flow are remembered, in place of rate and skew
	History int `key:"history" omit:"zero"`
	// without a packet for so long, all is forgotten
	Reset time.Duration `key:"reset" default:"2s" range:"10ms 1h"`
	// packets that overtook others by another path wait for these
	Ordered bool `key:"ordered" omit:"zero"`
}

// String names the SID and the flows, like "fcbb:bb00:2:f::/80 flows 1,2".
func (s MergeSID) String() string {
	return fmt.Sprintf("%s flows %s", s.Prefix, FormatFlows(s.Flows))
}

// FormatFlows writes flow ids as "1,2".
func FormatFlows[T int | uint32](flows []T) string {
	return strings.Join(lists.Map(flows, func(f T) string { return fmt.Sprint(f) }), ",")
}

// HeaderBytes is the length of the outer headers that lead along the list.
func (l SegmentList) HeaderBytes() int {
	inHeader := len(l.Segments)
	var tlvs []srv6.TLV
	if l.Redundancy == NumberedInTLV {
		tlvs = []srv6.TLV{srv6.Redundancy{}.TLV()}
	}
	// A header with a TLV and one segment is not reduced: erratum 7081 of RFC 8754.
	if l.Reduced && (inHeader > 1 || tlvs == nil) {
		inHeader--
	}
	if inHeader == 0 {
		return ipv6HeaderBytes
	}
	return ipv6HeaderBytes + srv6.SRH{Segments: make([]netip.Addr, inHeader), TLVs: tlvs}.Size()
}

// InnerMTU is the length of the largest packet that all lists of the policy carry through a domain,
// in bytes.
func (p SRPolicy) InnerMTU(d Domain) int {
	if p.MTU != 0 {
		return p.MTU
	}
	header := 0
	for _, path := range p.Paths {
		for _, l := range path.Lists {
			header = max(header, l.HeaderBytes())
		}
	}
	return d.MTU - header
}

// SetListState takes a segment list of a policy out of use, or back into it, in all paths that have
// it. It returns a changed copy of the node, or a *Problem; the node itself stays as it is.
func SetListState(n *Node, policy, list string, state ListState) (*Node, error) {
	if n.Headend == nil {
		return nil, roleless(n, "headend")
	}
	return n.changed(func(c *Node) error {
		i := slices.IndexFunc(c.Headend.Policies, func(p SRPolicy) bool { return p.Name == policy })
		if i < 0 {
			return Absent("policy", policy,
				lists.Map(c.Headend.Policies, func(p SRPolicy) string { return p.Name }))
		}
		found, known := false, []string(nil)
		for _, path := range c.Headend.Policies[i].Paths {
			for j := range path.Lists {
				l := &path.Lists[j]
				if l.Name == list {
					l.State, found = state, true
				}
				known = append(known, l.Name)
			}
		}
		if !found {
			slices.Sort(known)
			return Absent("segment list", list, slices.Compact(known))
		}
		return nil
	})
}
