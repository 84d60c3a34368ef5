package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// What the sections headend and merge need not say.
const (
	DefaultPreference = 100 // of the first path (RFC 9256 section 2.7); each that follows has one less
	DefaultMergeRate  = 100_000
	DefaultMergeSkew  = 50 * time.Millisecond
	DefaultMergeReset = 2 * time.Second
)

func newHeadend() *Headend { return &Headend{HopLimit: DefaultHopLimit} }

func newXDPInterface() XDPInterface { return XDPInterface{Mode: Auto} }

// newHeadendInterface faces hosts, unless the file says more: what they say about where a packet
// of the domain comes from is not believed.
func newHeadendInterface() XDPInterface { return XDPInterface{Side: External, Mode: Auto} }

func readHeadend(v value, h *Headend) {
	v.mapping(
		field{"interfaces", intoList(&h.Interfaces, readHeadendInterface), ""},
		field{"uplinks", intoList(&h.Uplinks, readText), ""},
		field{"local", intoList(&h.Local, readText), ""},
		field{"source", into(&h.Source, ParseAddress), `"source: " and an address of this machine that lies inside infrastructure`},
		field{"hopLimit", intoNumber(&h.HopLimit), ""},
		field{"policies", intoList(&h.Policies, readSRPolicy), ""},
		field{"rules", intoList(&h.Rules, readSteeringRule), ""},
	)
}

func readHeadendInterface(v value) XDPInterface {
	i := newHeadendInterface()
	v.mapping(
		field{"name", intoText(&i.Name), `"name: " and the name of a network interface`},
		field{"side", intoText(&i.Side), ""},
		field{"mode", intoText(&i.Mode), ""},
	)
	return i
}

func readXDPInterface(v value) XDPInterface {
	i := newXDPInterface()
	v.mapping(
		field{"name", intoText(&i.Name), `"name: " and the name of a network interface`},
		field{"mode", intoText(&i.Mode), ""},
	)
	return i
}

func readSRPolicy(v value) (p SRPolicy) {
	v.mapping(
		field{"name", intoText(&p.Name), `"name: " and a name for the policy`},
		field{"color", intoNumber(&p.Color), ""},
		field{"endpoint", into(&p.Endpoint, ParseAddress), ""},
		field{"dropIfInvalid", into(&p.DropIfInvalid, parseBool), ""},
		field{"mtu", intoNumber(&p.MTU), ""},
		field{"paths", func(v value) {
			v.each(func(item value) { p.Paths = append(p.Paths, readCandidatePath(item, len(p.Paths))) })
		}, `"paths:" and a list of name, action and lists`},
	)
	p.number()
	return p
}

// number decides for lists that do not say whether they are numbered: those of a policy that mirrors are.
func (p *SRPolicy) number() {
	form := NotNumbered
	for _, path := range p.Paths {
		if path.Action == ActionMirror {
			form = NumberedInTLV
		}
	}
	for _, path := range p.Paths {
		for i := range path.Lists {
			if path.Lists[i].Redundancy == "" {
				path.Lists[i].Redundancy = form
			}
		}
	}
}

// readCandidatePath reads the path of a number: those that come first are preferred.
func readCandidatePath(v value, number int) CandidatePath {
	p := CandidatePath{Preference: max(0, DefaultPreference-number), LeastLists: 1}
	v.mapping(
		field{"name", intoText(&p.Name), `"name: " and a name for the path`},
		field{"preference", intoNumber(&p.Preference), ""},
		field{"action", intoText(&p.Action), `"action: " and ` + alternatives(steeringActions)},
		field{"leastLists", intoNumber(&p.LeastLists), ""},
		field{"lists", intoList(&p.Lists, readSegmentList), `"lists:" and a list of name and segments`},
	)
	return p
}

func readSegmentList(v value) SegmentList {
	l := SegmentList{Weight: DefaultWeight, State: ListUp}
	v.mapping(
		field{"name", intoText(&l.Name), `"name: " and a name for the segment list`},
		field{"segments", intoList(&l.Segments, readSegment),
			`"segments: " and SIDs in the order of travel, the last of which decapsulates`},
		field{"reduced", into(&l.Reduced, parseBool), ""},
		field{"weight", intoNumber(&l.Weight), ""},
		field{"redundancy", intoText(&l.Redundancy), ""},
		field{"flow", intoNumber(&l.Flow), ""},
		field{"state", intoText(&l.State), ""},
	)
	return l
}

func readSegment(v value) (sid netip.Addr) {
	into(&sid, ParseSID)(v)
	return sid
}

func readSteeringRule(v value) SteeringRule {
	r := SteeringRule{DSCP: AnyDSCP}
	v.mapping(append([]field{{"policy", intoText(&r.Policy), `"policy: " and the name of a policy`}}, matchFields(&r)...)...)
	return r
}

// matchFields are the keys that choose traffic.
func matchFields(r *SteeringRule) []field {
	return []field{
		{"source", into(&r.Source, ParseAnyPrefix), ""},
		{"destination", into(&r.Destination, ParseAnyPrefix), ""},
		{"protocol", into(&r.Protocol, ParseIPProtocol), ""},
		{"sourcePorts", into(&r.SourcePorts, ParsePortRange), ""},
		{"destinationPorts", into(&r.DestinationPorts, ParsePortRange), ""},
		{"dscp", intoNumber(&r.DSCP), ""},
	}
}

func readMerge(v value, m *Merge) {
	v.mapping(
		field{"interfaces", intoList(&m.Interfaces, readXDPInterface), `"interfaces:" and a list of names`},
		field{"sids", intoList(&m.SIDs, readMergeSID), `"sids:" and a list of prefix and flows`},
	)
}

func readMergeSID(v value) MergeSID {
	m := MergeSID{Form: NumberedInTLV, Reset: DefaultMergeReset}
	v.mapping(
		field{"prefix", into(&m.Prefix, parsePrefix), `"prefix: " and the SID's prefix, like "fcbb:bb00:2:f::/80"`},
		field{"mark", intoNumber(&m.Mark), ""},
		field{"form", intoText(&m.Form), ""},
		field{"flows", intoList(&m.Flows, readFlow),
			`"flows: " and the flow ids of the paths, which "sextant policy show" tells at the head-end`},
		field{"copies", intoNumber(&m.Copies), ""},
		field{"rate", intoNumber(&m.Rate), ""},
		field{"skew", into(&m.Skew, ParseWait), ""},
		field{"history", intoNumber(&m.History), ""},
		field{"reset", into(&m.Reset, ParseWait), ""},
		field{"ordered", into(&m.Ordered, parseBool), ""},
	)
	if _, given := v.d.places[join(v.path, "history")]; given {
		return m
	}
	if _, given := v.d.places[join(v.path, "rate")]; !given {
		m.Rate = DefaultMergeRate
	}
	if _, given := v.d.places[join(v.path, "skew")]; !given {
		m.Skew = DefaultMergeSkew
	}
	return m
}

func readFlow(v value) (flow int) {
	intoNumber(&flow)(v)
	return flow
}

// ParseAnyPrefix reads an IPv4 or IPv6 prefix whose host bits are 0.
func ParseAnyPrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, invalid(fmt.Sprintf("%q is not a prefix", s), `write it like "2001:db8::/32" or 192.0.2.0/24`)
	}
	if p != p.Masked() {
		return netip.Prefix{}, invalid(fmt.Sprintf("prefix %s has bits behind its length", s), "write "+p.Masked().String())
	}
	return p, nil
}

// ipProtocols are those that have a name in node files.
var ipProtocols = []struct {
	name   string
	number int
}{{"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmpv6", 58}, {"sctp", 132}}

// ParseIPProtocol reads an IP protocol: its name or number.
func ParseIPProtocol(s string) (int, error) {
	for _, p := range ipProtocols {
		if p.name == s {
			return p.number, nil
		}
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil && n > 0 {
		return int(n), nil
	}
	return 0, invalid(fmt.Sprintf("%q is not an IP protocol", s), "write tcp, udp, icmp, icmpv6, sctp or a number from 1 to 255")
}

// FormatIPProtocol writes a protocol as ParseIPProtocol reads it; 0 is "".
func FormatIPProtocol(number int) string {
	for _, p := range ipProtocols {
		if p.number == number {
			return p.name
		}
	}
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}

// ParsePortRange reads "80" or "5000-5010".
func ParsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	low, errLow := strconv.ParseUint(first, 10, 16)
	high, errHigh := strconv.ParseUint(last, 10, 16)
	if errLow != nil || errHigh != nil || low == 0 || high < low {
		return PortRange{}, invalid(fmt.Sprintf("%q is no range of ports", s), "write a port like 80, or two like 5000-5010")
	}
	return PortRange{uint16(low), uint16(high)}, nil
}

// String writes the range as ParsePortRange reads it; all ports are "".
func (r PortRange) String() string {
	switch {
	case r == PortRange{}:
		return ""
	case r.First == r.Last:
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}
