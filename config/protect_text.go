package config

import (
	"fmt"
	"strings"
)

// The types below are the shape of protect in the file.

type documentProtect struct {
	Topology    string               `yaml:"topology" json:"topology"`
	FRR         string               `yaml:"frr" json:"frr"`
	Node        string               `yaml:"node" json:"node"`
	Probe       documentProbe        `yaml:"probe" json:"probe"`
	Links       []documentLocalLink  `yaml:"links,omitempty" json:"links,omitempty"`
	Bound       float64              `yaml:"bound" json:"bound"`
	Protections []documentProtection `yaml:"protections,omitempty" json:"protections,omitempty"`
}

type documentProbe struct {
	Interval string `yaml:"interval" json:"interval"`
	Missed   int    `yaml:"missed" json:"missed"`
	Good     int    `yaml:"good" json:"good"`
}

type documentLocalLink struct {
	Interface string `yaml:"interface" json:"interface"`
	Link      string `yaml:"link" json:"link"`
}

type documentProtection struct {
	Name          string         `yaml:"name" json:"name"`
	To            string         `yaml:"to" json:"to"`
	Egress        string         `yaml:"egress" json:"egress"`
	ProbeSID      string         `yaml:"probeSID,omitempty" json:"probeSID,omitempty"`
	Agent         string         `yaml:"agent,omitempty" json:"agent,omitempty"`
	Match         []documentRule `yaml:"match" json:"match"`
	Copies        int            `yaml:"copies" json:"copies"`
	Spares        int            `yaml:"spares,omitempty" json:"spares,omitempty"`
	Disjoint      string         `yaml:"disjoint" json:"disjoint"`
	SIDs          int            `yaml:"sids" json:"sids"`
	Model         string         `yaml:"model" json:"model"`
	Rate          string         `yaml:"rate,omitempty" json:"rate,omitempty"`
	Redundancy    Redundancy     `yaml:"redundancy" json:"redundancy"`
	Flow          int            `yaml:"flow" json:"flow"`
	DropIfInvalid bool           `yaml:"dropIfInvalid,omitempty" json:"dropIfInvalid,omitempty"`
}

func protectDocument(p *Protect) *documentProtect {
	if p == nil {
		return nil
	}
	return &documentProtect{
		Topology: p.Topology, FRR: p.FRR, Node: p.Node, Probe: documentProbe{p.Probe.Interval.String(), p.Probe.Missed, p.Probe.Good},
		Links: each(p.Links, func(l LocalLink) documentLocalLink { return documentLocalLink(l) }),
		Bound: float64(p.BoundPermille) / 1000, Protections: each(p.Protections, protectionDocument),
	}
}

func protectionDocument(p Protection) documentProtection {
	d := documentProtection{
		Name: p.Name, To: p.To, Egress: p.Egress.String(), ProbeSID: addressText(p.ProbeSID), Agent: agentText(p.Agent),
		Match:  each(p.Matches, ruleDocument),
		Copies: p.Copies, Spares: p.Spares, Disjoint: p.Disjoint, SIDs: p.SIDs, Model: p.Model, Redundancy: p.Redundancy, Flow: p.Flow,
		DropIfInvalid: p.DropIfInvalid,
	}
	if p.RateKbps != 0 {
		d.Rate = FormatRate(p.RateKbps)
	}
	return d
}

// String writes the promise like "to R7, 2 copies, 1 spare, link-disjoint".
func (p Protection) String() string {
	text := fmt.Sprintf("to %s at %s, %d copies, %d spares, %s-disjoint, %d SIDs, model %s, redundancy %s, flows %d-%d", p.To, p.Egress,
		p.Copies, p.Spares, p.Disjoint, p.SIDs, p.Model, p.Redundancy, p.Flow, p.Flow+ProtectionFlows-1)
	if p.ProbeSID.IsValid() {
		text += ", probes to " + p.ProbeSID.String()
	}
	if p.Agent.IsValid() {
		text += ", agent " + p.Agent.String()
	}
	if p.RateKbps != 0 {
		text += ", rate " + FormatRate(p.RateKbps)
	}
	if p.DropIfInvalid {
		text += ", dropIfInvalid"
	}
	return text + ": " + p.MatchText()
}

// MatchText says what traffic is protected.
func (p Protection) MatchText() string {
	texts := each(p.Matches, func(m SteeringRule) string {
		text := strings.TrimSpace(strings.TrimPrefix(m.String(), "policy "))
		if text == "" {
			return "everything"
		}
		return text
	})
	return strings.Join(texts, ", or ")
}

func (d *differ) protect(a, b *Protect) {
	a, b = role(d, "protect", a, b, (*Protect).settings, func(p *Protect) *Protect {
		return &Protect{Topology: p.Topology, FRR: p.FRR, Node: p.Node, Probe: p.Probe, BoundPermille: p.BoundPermille}
	})
	if a == nil {
		return
	}
	d.modify("protect", "topology", a.Topology, b.Topology)
	d.modify("protect", "frr", a.FRR, b.FRR)
	d.modify("protect", "node", a.Node, b.Node)
	d.modify("protect", "probe", a.Probe.String(), b.Probe.String())
	d.modify("protect", "bound", FormatPermille(a.BoundPermille), FormatPermille(b.BoundPermille))
	named(d, a.Links, b.Links,
		func(l LocalLink) string { return l.Interface },
		func(l LocalLink) (string, string) { return "protect: interface " + l.Interface, "link " + l.Link },
		func(title string, a, b LocalLink) { d.modify(title, "link", a.Link, b.Link) })
	named(d, a.Protections, b.Protections,
		func(p Protection) string { return p.Name },
		func(p Protection) (string, string) { return "protection " + p.Name, p.String() },
		func(title string, a, b Protection) { d.modify(title, "is", a.String(), b.String()) })
}

func (p *Protect) settings() string {
	return fmt.Sprintf("topology %s, node %s, probe %s, bound %s", p.Topology, p.Node, p.Probe, FormatPermille(p.BoundPermille))
}

// String writes how paths are probed, like "every 10ms, down after 3, up after 10".
func (p Probe) String() string {
	if p.Interval == 0 {
		return "off"
	}
	return fmt.Sprintf("every %v, down after %d, up after %d", p.Interval, p.Missed, p.Good)
}
