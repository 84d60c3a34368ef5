package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
	"sextant/te/segment"
)

func (a *app) protectCommand() *cobra.Command {
	return noun("protect", "Protections: traffic that travels over paths which share nothing",
		seeAlso("sextant policy", "sextant path disjoint"), a.protectList(), a.protectShow(),
		a.protectAdd(), a.protectDelete())
}

func (a *app) protectList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the protections of this head-end",
		Example:     "  sextant lab exec protect r1 -- sextant protect list",
		Annotations: seeAlso("sextant protect show"),
		RunE:        shows(a, a.agentFor, (*api.Client).Protections, protectionsView),
	}
}

func protectionsView(protections []api.Protection) view {
	t := table{
		columns: []string{"NAME", "FROM", "TO", "STATE", "COPIES", "SPARES", "RATE", "TRAFFIC"},
		wide:    []string{"EGRESS", "FLOWS", "DISJOINT", "REASON"},
	}
	return listView(protections, t, func(p api.Protection) (string, []any) {
		carry, spare := 0, 0
		for _, path := range p.Paths {
			switch path.Role {
			case api.Carries:
				carry++
			case api.Spare:
				spare++
			}
		}
		return p.Name, []any{p.Name, p.From, p.To, p.State, fmt.Sprintf("%d/%d", carry, p.Copies),
			fmt.Sprintf("%d/%d", spare, p.Spares),
			textIf(p.RateKbps != 0, config.FormatRate(p.RateKbps)), p.Match, p.Egress,
			flowsText(p.Flows), p.Disjoint, orDash(p.Reason)}
	})
}

func flowsText(flows []int) string {
	if len(flows) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d-%d", flows[0], flows[len(flows)-1])
}

// protectOptions are the flags of protect add.
type protectOptions struct {
	api.ProtectionSpec
	egress, probe, rate, agent string
	match                      []string
	dryRun                     bool
}

func (a *app) protectAdd() *cobra.Command {
	var o protectOptions
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Protect traffic by several disjoint paths at once, replaced " +
			"when links fail",
		Long: `Protect traffic by several disjoint paths at once, replaced when links fail.

The agent computes the paths on its topology, with a proof of their quality. It refuses a protection that would load a
link beyond the bound of its node file, or that has fewer paths than copies, with the reason. Spares take over at once
when a path fails; then paths are computed again. At the egress, the flows that are shown have to be in the merge
section of the node file: with --egress-agent, its agent is asked, and a protection whose copies it would drop is refused.`,
		Example: "  sextant lab up examples/protect.yaml\n" +
			"  sextant lab exec protect r1 -- sextant protect add video --to r7 --egress " +
			"fcbb:bb00:7:f:: " +
			"--match destination=2001:db8:b::/64,protocol=udp --rate 2Mbit --egress-agent " +
			"[fd00:5e::7]:9477\n" +
			"  sextant lab exec protect r1 -- sextant protect add bank --from r1 --to r7 " +
			"--egress fcbb:bb00:7:f:: " +
			"--match dscp=46 --copies 3 --spares 1 --dry-run",
		Annotations: seeAlso("sextant protect show", "sextant path explain", "sextant merge"),
		Args:        takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.addProtection(cmd, o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.From, "from", "",
		"node of the topology where the traffic enters: this one's name, which need not be said")
	flags.StringVar(&o.To, "to", "", "node of the topology where it leaves")
	flags.StringVar(&o.egress, "egress", "",
		"SID there that merges copies (End.MERGE), or decapsulates")
	flags.StringVar(&o.probe, "probe-sid", "",
		"SID there that decapsulates probes, if not --egress")
	flags.StringVar(&o.agent, "egress-agent", "",
		"api.metrics of the egress's agent, to see that it merges these flows and to show what "+
			"came of copies, like [fd00:5e::7]:9477")
	flags.StringArrayVar(&o.match, "match", nil,
		"the traffic: source=, destination=, protocol=, sourcePorts=, destinationPorts=, dscp=, "+
			"with commas between; again for more")
	flags.IntVar(&o.Copies, "copies", 2, "paths that carry each packet")
	flags.IntVar(&o.Spares, "spares", 0, "paths that stand by")
	flags.StringVar(&o.Disjoint, "disjoint", string(segment.LinkDisjoint),
		"what paths must not share: edge, link, node or srlg")
	flags.IntVar(&o.SIDs, "sids", segment.DefaultMaxSIDs, "the most SIDs in a list")
	flags.StringVar(&o.Model, "model", string(segment.ForcedAdjacency),
		"what a segment is: adjacency or forced")
	flags.StringVar(&o.rate, "rate", "0",
		"expected rate of one copy, with outer headers, like 10Mbit; 0: not known")
	flags.StringVar(&o.Redundancy, "redundancy", string(config.NumberedInTLV),
		"how copies are numbered: tlv, sid, or none, where they are not merged")
	flags.IntVar(&o.Flow, "flow", 0,
		"first of the flow ids by which the egress knows the paths; 0: chosen")
	flags.BoolVar(&o.DropIfInvalid, "drop", false,
		"drop the traffic while no path is up, instead of forwarding it without protection")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say what it would be")
	complete(cmd, "disjoint", "edge", "link", "node", "srlg")
	complete(cmd, "model", string(segment.ForcedAdjacency), string(segment.Forced))
	complete(cmd, "redundancy", "tlv", "sid", "none")
	return cmd
}

func (a *app) addProtection(cmd *cobra.Command, o protectOptions, name string) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	p, err := a.agent().Protect(ctx, name, spec, o.dryRun)
	if err != nil {
		return err
	}
	v := protectionView(p)
	if o.dryRun {
		v.prose = "Nothing was changed.\n\n" + v.prose
	}
	if a.quiet && !o.dryRun && a.output == formatTable {
		return nil
	}
	return a.show(v)
}

// spec reads what flags say.
func (o protectOptions) spec() (spec api.ProtectionSpec, err error) {
	spec = o.ProtectionSpec
	switch {
	case spec.To == "":
		return spec, usageErrorf("--to is needed: the node of the topology where the traffic " +
			"leaves")
	case o.egress == "":
		return spec, usageErrorf("--egress is needed: the SID at %s that merges copies", spec.To)
	case len(o.match) == 0:
		return spec, usageErrorf("--match is needed: the traffic, like " +
			"destination=2001:db8:7::/48,protocol=udp")
	}
	if spec.Egress, err = config.ParseSID(o.egress); err != nil {
		return spec, usageErrorf("--egress: %w", err)
	}
	if spec.ProbeSID, err = optionalSID(o.probe); err != nil {
		return spec, usageErrorf("--probe-sid: %w", err)
	}
	if o.agent != "" {
		if spec.Agent, err = config.ParseListener(o.agent); err != nil {
			return spec, usageErrorf("--egress-agent: %w", err)
		}
	}
	if spec.RateKbps, err = config.ParseRate(o.rate); err != nil {
		return spec, usageErrorf("--rate: %w", err)
	}
	for _, text := range o.match {
		t, err := parseTraffic(text)
		if err != nil {
			return spec, usageErrorf("--match: %w", err)
		}
		spec.Match = append(spec.Match, t)
	}
	return spec, nil
}

func optionalSID(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	return config.ParseSID(text)
}

// parseTraffic reads "destination=2001:db8:7::/48,protocol=udp".
func parseTraffic(text string) (t api.Traffic, err error) {
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		field, known := map[string]*string{
			"source": &t.Source, "destination": &t.Destination, "protocol": &t.Protocol,
			"sourcePorts":      &t.SourcePorts,
			"destinationPorts": &t.DestinationPorts,
		}[key]
		switch {
		case !ok:
			return t, fmt.Errorf("%q is not KEY=VALUE", part)
		case known:
			*field = value
		case key == "dscp":
			n, err := strconv.Atoi(value)
			if err != nil {
				return t, fmt.Errorf("dscp %q is no number", value)
			}
			t.DSCP = &n
		default:
			return t, fmt.Errorf("unknown key %q; write source, destination, protocol, "+
				"sourcePorts, destinationPorts or dscp", key)
		}
	}
	return t, nil
}

func (a *app) protectDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "End a protection: its traffic is forwarded as any other",
		Example:           "  sextant lab exec protect r1 -- sextant protect delete video",
		Annotations:       seeAlso("sextant protect list"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeProtections(),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.changed(a.agent().DeleteProtection(ctx, args[0]))
		}),
	}
}

// completeProtections offers the names of protections for the first argument.
func (a *app) completeProtections() cobra.CompletionFunc {
	return offers(a, (*api.Client).Protections, func(p api.Protection) (string, string) {
		return p.Name, p.Match + " to " + p.To
	})
}
