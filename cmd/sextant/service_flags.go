package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// serviceFlags are the flags of a service that are not one setting each.
type serviceFlags struct{ role, policy, newConnections string }

func newServiceFlags(cmd *cobra.Command) *serviceFlags {
	f := &serviceFlags{}
	settingFlags(cmd, reflect.TypeFor[api.ServiceSpec]())
	settingFlags(cmd, reflect.TypeFor[api.AcceptSpec]())
	cmd.Flags().StringVar(&f.newConnections, "new-connections", "none",
		"edge: how many may be opened per second, and at once, like 1000,200; none: as many as "+
			"come")
	cmd.Flags().StringVar(&f.policy, "policy", "",
		"edge: offer (default), shadow or ecmp; host: average (default), always, static, "+
			"dynamic or delay")
	roleFlag(cmd, &f.role)
	complete(cmd, "policy", "offer", "shadow", "ecmp", "always", "static", "dynamic", "average",
		"delay")
	complete(cmd, "port", "any")
	complete(cmd, "new-connections", "none")
	return f
}

func (f *serviceFlags) spec(cmd *cobra.Command) (spec api.ServiceSpec, err error) {
	var accept api.AcceptSpec
	if err := readSettingFlags(cmd, &spec); err != nil {
		return spec, err
	}
	if cmd.Flags().Changed("new-connections") {
		limit, err := parseNewConnections(f.newConnections)
		if err != nil {
			return spec, usageErrorf("--new-connections: %w", err)
		}
		spec.NewConnections = &limit
	}
	if err := readSettingFlags(cmd, &accept); err != nil {
		return spec, err
	}
	if cmd.Flags().Changed("policy") {
		policy, acceptance := config.ServicePolicy(f.policy), config.Policy(f.policy)
		switch policy {
		case config.PolicyOffer, config.PolicyShadow, config.PolicyECMP:
			spec.Policy = &policy
		default:
			accept.Policy = &acceptance
		}
	}
	if accept != (api.AcceptSpec{}) {
		spec.Accept = &accept
	}
	return spec, nil
}

// parseNewConnections reads "none", or a rate per second and how many at once, like "1000,200".
func parseNewConnections(text string) (api.NewConnectionsSpec, error) {
	var spec api.NewConnectionsSpec
	if text == "none" {
		return spec, nil
	}
	rate, burst, both := strings.Cut(text, ",")
	var wrong [2]error
	spec.Rate, wrong[0] = strconv.Atoi(rate)
	spec.Burst, wrong[1] = strconv.Atoi(burst)
	if !both || wrong != [2]error{} {
		return spec, fmt.Errorf("%q is no limit; write none, or how many per second and how many "+
			"at once, like 1000,200", text)
	}
	return spec, nil
}
