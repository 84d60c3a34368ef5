package config

import (
	"fmt"
	"net/netip"
	"strings"

	"sextant/packet/lists"
)

// prefixText is "" for the zero value, which the file leaves out.
func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
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

func (p SRPolicy) summary() string {
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

func (p CandidatePath) summary() string {
	return fmt.Sprintf("preference %d, action %s, leastLists %d", p.Preference, p.Action,
		p.LeastLists)
}

func segmentsText(segments []netip.Addr) string {
	return lists.Join(segments, " ")
}

func (s MergeSID) summary() string {
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
