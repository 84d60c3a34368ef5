package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// The types below are the shape of headend and merge in the file.

type documentHeadend struct {
	Interfaces []documentInterface `yaml:"interfaces,omitempty" json:"interfaces,omitempty"`
	Uplinks    []string            `yaml:"uplinks,flow,omitempty" json:"uplinks,omitempty"`
	Local      []string            `yaml:"local,flow,omitempty" json:"local,omitempty"`
	Source     string              `yaml:"source" json:"source"`
	HopLimit   int                 `yaml:"hopLimit" json:"hopLimit"`
	Policies   []documentPolicy    `yaml:"policies,omitempty" json:"policies,omitempty"`
	Rules      []documentRule      `yaml:"rules,omitempty" json:"rules,omitempty"`
}

type documentPolicy struct {
	Name          string         `yaml:"name" json:"name"`
	Color         int            `yaml:"color,omitempty" json:"color,omitempty"`
	Endpoint      string         `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`
	DropIfInvalid bool           `yaml:"dropIfInvalid,omitempty" json:"dropIfInvalid,omitempty"`
	MTU           int            `yaml:"mtu,omitempty" json:"mtu,omitempty"`
	Paths         []documentPath `yaml:"paths" json:"paths"`
}

type documentPath struct {
	Name       string         `yaml:"name" json:"name"`
	Preference int            `yaml:"preference" json:"preference"`
	Action     SteeringAction `yaml:"action" json:"action"`
	LeastLists int            `yaml:"leastLists" json:"leastLists"`
	Lists      []documentList `yaml:"lists" json:"lists"`
}

type documentList struct {
	Name       string     `yaml:"name" json:"name"`
	Segments   []string   `yaml:"segments,flow" json:"segments"`
	Reduced    bool       `yaml:"reduced,omitempty" json:"reduced,omitempty"`
	Weight     int        `yaml:"weight" json:"weight"`
	Redundancy Redundancy `yaml:"redundancy" json:"redundancy"`
	Flow       int        `yaml:"flow,omitempty" json:"flow,omitempty"`
	State      ListState  `yaml:"state" json:"state"`
}

type documentRule struct {
	Policy           string `yaml:"policy,omitempty" json:"policy,omitempty"`
	Source           string `yaml:"source,omitempty" json:"source,omitempty"`
	Destination      string `yaml:"destination,omitempty" json:"destination,omitempty"`
	Protocol         string `yaml:"protocol,omitempty" json:"protocol,omitempty"`
	SourcePorts      string `yaml:"sourcePorts,omitempty" json:"sourcePorts,omitempty"`
	DestinationPorts string `yaml:"destinationPorts,omitempty" json:"destinationPorts,omitempty"`
	DSCP             *int   `yaml:"dscp,omitempty" json:"dscp,omitempty"`
}

type documentMerge struct {
	Interfaces []documentInterface `yaml:"interfaces" json:"interfaces"`
	SIDs       []documentMergeSID  `yaml:"sids" json:"sids"`
}

type documentMergeSID struct {
	Prefix  string     `yaml:"prefix" json:"prefix"`
	Mark    int        `yaml:"mark,omitempty" json:"mark,omitempty"`
	Form    Redundancy `yaml:"form" json:"form"`
	Flows   []int      `yaml:"flows,flow" json:"flows"`
	Copies  int        `yaml:"copies,omitempty" json:"copies,omitempty"`
	Rate    int        `yaml:"rate,omitempty" json:"rate,omitempty"`
	Skew    string     `yaml:"skew,omitempty" json:"skew,omitempty"`
	History int        `yaml:"history,omitempty" json:"history,omitempty"`
	Reset   string     `yaml:"reset" json:"reset"`
	Ordered bool       `yaml:"ordered,omitempty" json:"ordered,omitempty"`
}

func headendDocument(h *Headend) *documentHeadend {
	if h == nil {
		return nil
	}
	return &documentHeadend{
		Interfaces: each(h.Interfaces, xdpDocument), Uplinks: h.Uplinks, Local: h.Local, Source: h.Source.String(), HopLimit: h.HopLimit,
		Policies: each(h.Policies, func(p SRPolicy) documentPolicy {
			return documentPolicy{p.Name, p.Color, addressText(p.Endpoint), p.DropIfInvalid, p.MTU, each(p.Paths, pathDocument)}
		}),
		Rules: each(h.Rules, ruleDocument),
	}
}

func xdpDocument(i XDPInterface) documentInterface {
	return documentInterface(i)
}

func pathDocument(p CandidatePath) documentPath {
	return documentPath{p.Name, p.Preference, p.Action, p.LeastLists, each(p.Lists, func(l SegmentList) documentList {
		return documentList{l.Name, each(l.Segments, netip.Addr.String), l.Reduced, l.Weight, l.Redundancy, l.Flow, l.State}
	})}
}

func ruleDocument(r SteeringRule) documentRule {
	d := documentRule{
		Policy: r.Policy, Source: prefixText(r.Source), Destination: prefixText(r.Destination), Protocol: FormatIPProtocol(r.Protocol),
		SourcePorts: r.SourcePorts.String(), DestinationPorts: r.DestinationPorts.String(),
	}
	if r.DSCP != AnyDSCP {
		d.DSCP = &r.DSCP
	}
	return d
}

// prefixText is "" for the zero value, which the file leaves out.
func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

func mergeDocument(m *Merge) *documentMerge {
	if m == nil {
		return nil
	}
	return &documentMerge{
		Interfaces: each(m.Interfaces, xdpDocument),
		SIDs: each(m.SIDs, func(s MergeSID) documentMergeSID {
			d := documentMergeSID{
				Prefix: s.Prefix.String(), Mark: s.Mark, Form: s.Form, Flows: s.Flows, Copies: s.Copies, Rate: s.Rate, History: s.History,
				Reset:   s.Reset.String(),
				Ordered: s.Ordered,
			}
			if s.History == 0 {
				d.Skew = s.Skew.String()
			}
			return d
		}),
	}
}

// String writes the rule like "policy video destination 2001:db8::/64 protocol udp".
func (r SteeringRule) String() string {
	return strings.TrimSpace("policy " + r.Policy + " " + r.Match())
}

// Match writes which packets the rule chooses; "" is all of them.
func (r SteeringRule) Match() string {
	var words []string
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+" "+value)
		}
	}
	add("source", prefixText(r.Source))
	add("destination", prefixText(r.Destination))
	add("protocol", FormatIPProtocol(r.Protocol))
	add("sourcePorts", r.SourcePorts.String())
	add("destinationPorts", r.DestinationPorts.String())
	if r.DSCP != AnyDSCP {
		add("dscp", fmt.Sprint(r.DSCP))
	}
	return strings.Join(words, " ")
}

func (d *differ) headend(a, b *Headend) {
	a, b = role(d, "headend", a, b,
		func(h *Headend) string { return fmt.Sprintf("source %s", h.Source) },
		func(h *Headend) *Headend {
			return &Headend{Source: h.Source, HopLimit: h.HopLimit, Uplinks: h.Uplinks, Local: h.Local}
		})
	if a == nil {
		return
	}
	d.xdpInterfaces("headend", a.Interfaces, b.Interfaces)
	d.modify("headend", "uplinks", strings.Join(a.Uplinks, " "), strings.Join(b.Uplinks, " "))
	d.modify("headend", "local", strings.Join(a.Local, " "), strings.Join(b.Local, " "))
	d.modify("headend", "source", a.Source.String(), b.Source.String())
	d.number("headend", "hopLimit", a.HopLimit, b.HopLimit)
	d.policies(a.Policies, b.Policies)
	d.rules(a.Rules, b.Rules)
}

func (d *differ) xdpInterfaces(role string, a, b []XDPInterface) {
	named(d, a, b,
		func(i XDPInterface) string { return i.Name },
		func(i XDPInterface) (string, string) {
			if i.Side == "" {
				return role + " interface " + i.Name, "mode " + string(i.Mode)
			}
			return role + " interface " + i.Name, fmt.Sprintf("side %s, mode %s", i.Side, i.Mode)
		},
		func(title string, a, b XDPInterface) {
			d.modify(title, "side", string(a.Side), string(b.Side))
			d.modify(title, "mode", string(a.Mode), string(b.Mode))
		})
}

func (d *differ) policies(a, b []SRPolicy) {
	match(a, b, func(p SRPolicy) string { return p.Name },
		func(p SRPolicy) { d.remove("policy "+p.Name, p.settings()); d.paths("policy "+p.Name, p.Paths, nil) },
		func(a, b SRPolicy) {
			title := "policy " + a.Name
			d.number(title, "color", a.Color, b.Color)
			d.modify(title, "endpoint", addressText(a.Endpoint), addressText(b.Endpoint))
			d.modify(title, "dropIfInvalid", fmt.Sprint(a.DropIfInvalid), fmt.Sprint(b.DropIfInvalid))
			d.number(title, "mtu", a.MTU, b.MTU)
			d.paths(title, a.Paths, b.Paths)
		},
		func(p SRPolicy) { d.add("policy "+p.Name, p.settings()); d.paths("policy "+p.Name, nil, p.Paths) })
}

func (p SRPolicy) settings() string {
	var words []string
	if p.Color != 0 {
		words = append(words, fmt.Sprintf("color %d", p.Color))
	}
	if p.Endpoint.IsValid() {
		words = append(words, "endpoint "+p.Endpoint.String())
	}
	if p.DropIfInvalid {
		words = append(words, "dropIfInvalid")
	}
	if p.MTU != 0 {
		words = append(words, fmt.Sprintf("mtu %d", p.MTU))
	}
	return strings.Join(words, ", ")
}

func (d *differ) paths(policy string, a, b []CandidatePath) {
	match(a, b, func(p CandidatePath) string { return p.Name },
		func(p CandidatePath) {
			d.remove(policy+": path "+p.Name, p.settings())
			d.lists(policy+": path "+p.Name, p.Lists, nil)
		},
		func(a, b CandidatePath) {
			title := policy + ": path " + a.Name
			d.number(title, "preference", a.Preference, b.Preference)
			d.modify(title, "action", string(a.Action), string(b.Action))
			d.number(title, "leastLists", a.LeastLists, b.LeastLists)
			d.lists(title, a.Lists, b.Lists)
		},
		func(p CandidatePath) {
			d.add(policy+": path "+p.Name, p.settings())
			d.lists(policy+": path "+p.Name, nil, p.Lists)
		})
}

func (p CandidatePath) settings() string {
	return fmt.Sprintf("preference %d, action %s, leastLists %d", p.Preference, p.Action, p.LeastLists)
}

func (d *differ) lists(path string, a, b []SegmentList) {
	named(d, a, b,
		func(l SegmentList) string { return l.Name },
		func(l SegmentList) (string, string) {
			return path + ": list " + l.Name, fmt.Sprintf("segments %s, redundancy %s", segmentsText(l.Segments), l.Redundancy)
		},
		func(title string, a, b SegmentList) {
			d.modify(title, "segments", segmentsText(a.Segments), segmentsText(b.Segments))
			d.modify(title, "reduced", fmt.Sprint(a.Reduced), fmt.Sprint(b.Reduced))
			d.number(title, "weight", a.Weight, b.Weight)
			d.modify(title, "redundancy", string(a.Redundancy), string(b.Redundancy))
			d.number(title, "flow", a.Flow, b.Flow)
			d.modify(title, "state", string(a.State), string(b.State))
		})
}

func segmentsText(segments []netip.Addr) string {
	return strings.Join(each(segments, netip.Addr.String), " ")
}

// rules are known by their places: the first that matches decides.
func (d *differ) rules(a, b []SteeringRule) {
	for i := range max(len(a), len(b)) {
		title := fmt.Sprintf("rule %d", i+1)
		switch {
		case i >= len(b):
			d.remove(title, a[i].String())
		case i >= len(a):
			d.add(title, b[i].String())
		default:
			d.modify(title, "is", a[i].String(), b[i].String())
		}
	}
}

func (d *differ) merge(a, b *Merge) {
	a, b = role(d, "merge", a, b, unsaid[Merge], func(*Merge) *Merge { return &Merge{} })
	if a == nil {
		return
	}
	d.xdpInterfaces("merge", a.Interfaces, b.Interfaces)
	named(d, a.SIDs, b.SIDs, MergeSID.String,
		func(s MergeSID) (string, string) { return "merge " + s.String(), s.settings() },
		func(title string, a, b MergeSID) { d.modify(title, "settings", a.settings(), b.settings()) })
}

func (s MergeSID) settings() string {
	words := []string{"form " + string(s.Form)}
	if s.Mark != 0 {
		words = append(words, fmt.Sprintf("mark %d", s.Mark))
	}
	if s.Copies != 0 {
		words = append(words, fmt.Sprintf("copies %d", s.Copies))
	}
	if s.History != 0 {
		words = append(words, fmt.Sprintf("history %d", s.History))
	} else {
		words = append(words, fmt.Sprintf("rate %d, skew %v", s.Rate, s.Skew))
	}
	words = append(words, fmt.Sprintf("reset %v", s.Reset))
	if s.Ordered {
		words = append(words, "ordered")
	}
	return strings.Join(words, ", ")
}
