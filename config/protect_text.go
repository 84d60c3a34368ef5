package config

import (
	"fmt"
	"strings"

	"sextant/packet/lists"
)

// String writes the promise like "to R7, 2 copies, 1 spare, link-disjoint".
func (p Protection) String() string {
	text := fmt.Sprintf("to %s at %s, %d copies, %d spares, %s-disjoint, %d SIDs, model %s, "+
		"redundancy %s, flows %d-%d", p.To, p.Egress,
		p.Copies, p.Spares, p.Disjoint, p.SIDs, p.Model, p.Redundancy, p.Flow,
		p.Flow+ProtectionFlows-1)
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
	texts := lists.Map(p.Matches, func(m SteeringRule) string {
		text := strings.TrimSpace(strings.TrimPrefix(m.String(), "policy "))
		if text == "" {
			return "everything"
		}
		return text
	})
	return strings.Join(texts, ", or ")
}

func (p Protect) summary() string {
	return fmt.Sprintf("topology %s, node %s, probe %s, bound %s", p.Topology, p.Node, p.Probe,
		FormatPermille(p.BoundPermille))
}

// String writes how paths are probed, like "every 10ms, down after 3, up after 10".
func (p Probe) String() string {
	if p.Interval == 0 {
		return "off"
	}
	return fmt.Sprintf("every %v, down after %d, up after %d", p.Interval, p.Missed, p.Good)
}
