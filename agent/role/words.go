package role

import (
	"sextant/config"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// AttachModes translates the configuration's words.
var AttachModes = map[config.Mode]datapath.Mode{
	config.Auto: datapath.Auto, config.Native: datapath.Native, config.Generic: datapath.Generic,
}

// AttachSides translates the configuration's words.
var AttachSides = map[config.Side]datapath.Side{
	config.External: datapath.External, config.Internal: datapath.Internal,
	config.Mixed: datapath.Mixed,
}

// SideName is the configuration's word for a side.
func SideName(s datapath.Side) config.Side {
	for name, side := range AttachSides {
		if side == s {
			return name
		}
	}
	return ""
}

// SteerRule translates a rule of the node file.
func SteerRule(r config.SteeringRule) srpolicy.Rule {
	rule := srpolicy.Rule{Policy: r.Policy, Match: srpolicy.Match{
		Source: r.Source, Destination: r.Destination, Protocol: uint8(r.Protocol),
		SourcePorts:      srpolicy.Ports(r.SourcePorts),
		DestinationPorts: srpolicy.Ports(r.DestinationPorts),
	}}
	if r.DSCP != config.AnyDSCP {
		rule.Match.DSCP, rule.Match.ByDSCP = uint8(r.DSCP), true
	}
	return rule
}
