package srpolicy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Limits of the data plane.
const (
	MaxRules    = 128 // in a table
	MaxPolicies = 256 // of a head-end
	MaxLists    = 8   // of a candidate path
)

// Action is what a candidate path does with its segment lists.
type Action uint8

// The actions.
const (
	Path      Action = iota + 1 // all packets take the one list
	SplitFlow                   // each flow takes one, chosen by weight
	// packets take them in turn, as often as their weight says (SPLIT_RR of Aubry et al.)
	SplitPacket
	Mirror // each packet takes all of them (MIRROR)
	Drop   // there is none; see Policy.DropIfInvalid
)

var actionNames = [...]string{Path: "path", SplitFlow: "split-flow", SplitPacket: "split-packet",
	Mirror: "mirror", Drop: "drop"}

// String returns the name that configuration files use.
func (a Action) String() string {
	if int(a) < len(actionNames) && actionNames[a] != "" {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// ParseAction reads what String writes; drop is no action of a candidate path.
func ParseAction(text string) (Action, error) {
	for a := Path; a <= Mirror; a++ {
		if actionNames[a] == text {
			return a, nil
		}
	}
	return 0, fmt.Errorf("unknown action %q; use path, split-flow, split-packet or mirror", text)
}

// Redundancy is how packets on a list are numbered.
type Redundancy uint8

// The forms.
const (
	None Redundancy = iota // not numbered
	TLV                    // a redundancy TLV in the SRH
	SID                    // in the argument of the last segment, which is a redundancy SID
)

var redundancyNames = [...]string{None: "none", TLV: "tlv", SID: "sid"}

// String returns the name that configuration files use.
func (r Redundancy) String() string {
	if int(r) < len(redundancyNames) {
		return redundancyNames[r]
	}
	return fmt.Sprintf("Redundancy(%d)", uint8(r))
}

// ParseRedundancy reads what String writes.
func ParseRedundancy(text string) (Redundancy, error) {
	if i := slices.Index(redundancyNames[:], text); i >= 0 {
		return Redundancy(i), nil
	}
	return None, fmt.Errorf("unknown form of redundancy %q; use none, tlv or sid", text)
}

// List is a segment list. Its last segment is the egress's decapsulating SID.
type List struct {
	Name     string
	Segments []netip.Addr // in travel order; NEXT-C-SID carriers are segments too
	// without the first segment in the SRH, and without an SRH where there is nothing to say in it
	// (H.Encaps.Red)
	Reduced    bool
	Weight     uint32 // its share of flows or packets; 0 is 1
	Redundancy Redundancy
	// of the numbers: the egress knows the path by it. Not 0 if they are numbered; at most 2^20-1
	// in the SID form
	Flow uint32
	Down bool // it is known not to carry packets
}

// Origin is where a candidate path comes from (RFC 9256 section 2.3). The higher one wins.
type Origin uint8

// FromConfiguration is the origin of what an operator configures; 10 is PCEP, 20 BGP.
const FromConfiguration Origin = 30

// CandidatePath is one way to do what a policy is for.
type CandidatePath struct {
	Name          string
	Preference    uint32 // the valid path of the highest one is active; 0 is the default, 100
	Origin        Origin // 0 is FromConfiguration
	Originator    Originator
	Discriminator uint32
	Action        Action
	Lists         []List
	// with fewer lists that are up the path is not valid; 0 is 1. Two make a protected path step
	// back for a whole one
	LeastLists int
}

// Originator is who made a candidate path (RFC 9256 section 2.4).
type Originator struct {
	ASN  uint32
	Node netip.Addr
}

const defaultPreference = 100

// Policy is an SR policy: a color and an endpoint, and the candidate paths there.
type Policy struct {
	Name string
	// under which the data plane numbers and counts; keep it for the policy's life. Below
	// MaxPolicies
	Index    uint32
	Color    uint32
	Endpoint netip.Addr
	Paths    []CandidatePath
	// DropIfInvalid drops traffic while no path is valid (RFC 9256 section 8.2); else it is
	// forwarded as if there were no rule.
	DropIfInvalid bool
	// MTU is what packets may have before they are encapsulated, in bytes; 0 if that is not known.
	// A larger one is answered with a Packet Too Big.
	MTU uint16
}

// Rule gives traffic to a policy, by its name.
type Rule struct {
	Match  Match
	Policy string
}

// Active returns the policy's active candidate path (RFC 9256 section 2.9) with those of its lists
// that are up; ok is false if none is valid. Installed is the name of the one that is active now:
// of equals it stays.
func (p Policy) Active(installed string) (path CandidatePath, ok bool) {
	for _, candidate := range p.Paths {
		candidate.Lists = up(candidate.Lists)
		if len(candidate.Lists) < max(1, candidate.LeastLists) {
			continue
		}
		if !ok || candidate.compare(path, installed) > 0 {
			path, ok = candidate, true
		}
	}
	return path, ok
}

// PacketMTU returns how many bytes a packet may have by the policy's MTU and its active path; 0 if
// that is not known. A larger one is answered with a Packet Too Big.
func (p Policy) PacketMTU(installed string) uint16 {
	path, _ := p.Active(installed)
	if path.Action == Mirror && (p.MTU == 0 || p.MTU > MirrorMTU) {
		return MirrorMTU
	}
	return p.MTU
}

func up(lists []List) []List {
	return slices.DeleteFunc(slices.Clone(lists),
		func(l List) bool { return l.Down || len(l.Segments) == 0 })
}

// compare is positive if c is to be preferred: by preference, protocol origin, being installed,
// originator (lower) and discriminator (higher), in this order.
func (c CandidatePath) compare(o CandidatePath, installed string) int {
	is := func(name string) int {
		if name == installed {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(cmp.Or(c.Preference, defaultPreference),
			cmp.Or(o.Preference, defaultPreference)),
		cmp.Compare(cmp.Or(c.Origin, FromConfiguration), cmp.Or(o.Origin, FromConfiguration)),
		cmp.Compare(is(c.Name), is(o.Name)),
		cmp.Compare(o.Originator.ASN, c.Originator.ASN),
		o.Originator.Node.Compare(c.Originator.Node),
		cmp.Compare(c.Discriminator, o.Discriminator),
	)
}
