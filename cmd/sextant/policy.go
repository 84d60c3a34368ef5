package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/lists"
)

func (a *app) policyCommand() *cobra.Command {
	return noun("policy", "SR policies: which segment lists traffic takes",
		seeAlso("sextant merge", "sextant path"),
		a.policyList(), a.policyShow(),
		a.policySwitch("down", config.ListDown,
			"Take a segment list out of use, in all paths of a policy", "up"),
		a.policySwitch("up", config.ListUp, "Bring a segment list back into use", "down"))
}

func (a *app) policyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the SR policies of this head-end, with what is active",
		Example:     "  sextant lab exec policies ingress -- sextant policy list",
		Annotations: seeAlso("sextant policy show", "sextant merge list"),
		RunE:        shows(a, a.agentFor, (*api.Client).Policies, policiesView),
	}
}

func policiesView(policies []api.Policy) view {
	t := table{
		columns: []string{"NAME", "ACTIVE-PATH", "ACTION", "LISTS", "PACKETS", "BYTES"},
		wide:    []string{"NUMBERED", "MTU", "COLOR", "ENDPOINT", "MADE-BY", "INDEX"},
	}
	return listView(policies, t, func(p api.Policy) (string, []any) {
		action, lists := "-", "-"
		for _, path := range p.Paths {
			if path.Active {
				action, lists = string(path.Action), usedLists(path)
			}
		}
		return p.Name, []any{p.Name, orDash(p.ActivePath), action, lists, p.Packets, p.Bytes,
			p.NumberedPackets, orDash(unlessZero(p.MTU)), orDash(unlessZero(int(p.Color))),
			textIf(p.Endpoint.IsValid(), p.Endpoint.String()), madeBy(p), p.Index}
	})
}

// usedLists names the lists that packets take.
func usedLists(p api.PolicyPath) string {
	var names []string
	for _, l := range p.Lists {
		if l.Used {
			names = append(names, l.Name)
		}
	}
	return orDash(strings.Join(names, ","))
}

func madeBy(p api.Policy) string {
	if p.Computed {
		return "agent"
	}
	return "file"
}

// unlessZero is "" for 0.
func unlessZero(n int) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

func (a *app) policyShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a policy: its paths, which is active and why, and what " +
			"its segment lists carry",
		Example:           "  sextant lab exec policies ingress -- sextant policy show hosts",
		Annotations:       seeAlso("sextant policy list", "sextant policy down"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completePolicies(),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			policies, err := a.agent().Policies(ctx)
			if err != nil {
				return err
			}
			var names []string
			for _, p := range policies {
				if names = append(names, p.Name); p.Name == args[0] {
					return a.show(policyView(p))
				}
			}
			return absent("policy", args[0], names)
		}),
	}
}

func policyView(p api.Policy) view {
	var prose strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&prose, "%-10s %s\n", what+":", fmt.Sprintf(format, args...))
	}
	line("Name", "%s", p.Name)
	if p.Computed {
		line("Made by", "the agent")
	}
	if p.Color != 0 {
		line("Color", "%d", p.Color)
	}
	if p.Endpoint.IsValid() {
		line("Endpoint", "%s", p.Endpoint)
	}
	line("Traffic", "%d packets numbered, %d sent, %d bytes", p.NumberedPackets, p.Packets, p.Bytes)
	if p.MTU != 0 {
		line("MTU", "%d bytes before encapsulation", p.MTU)
	}
	for _, r := range p.Rules {
		line("Rule", "%s", r)
	}
	if len(p.Rules) == 0 {
		line("Rule", "none: no traffic comes to this policy")
	}
	line("Active", "%s", activeText(p))
	if egress := egressText(p); egress != "" {
		line("Egress", "%s", egress)
	}
	v := view{value: p, names: []string{p.Name}}
	for _, path := range p.Paths {
		v.tables = append(v.tables, listTable(path))
	}
	v.prose = prose.String()
	return v
}

func activeText(p api.Policy) string {
	switch {
	case p.ActivePath != "":
		return p.ActivePath
	case p.DropIfInvalid:
		return "none: packets are dropped"
	}
	return "none: packets are forwarded as if there were no policy"
}

// egressText is what the egress's node file has to say under merge.sids.
func egressText(p api.Policy) string {
	flows := map[netip.Addr][]uint32{}
	forms := map[netip.Addr]config.Redundancy{}
	var ends []netip.Addr
	for _, path := range p.Paths {
		for _, l := range path.Lists {
			end := l.Segments[len(l.Segments)-1]
			if l.Flow == 0 || slices.Contains(flows[end], l.Flow) {
				continue
			}
			if flows[end] == nil {
				ends = append(ends, end)
			}
			flows[end], forms[end] = append(flows[end], l.Flow), l.Redundancy
		}
	}
	var texts []string
	for _, end := range ends {
		texts = append(texts, fmt.Sprintf("%s, form %s, flows [%s]", end, forms[end],
			strings.ReplaceAll(config.FormatFlows(flows[end]),
				",", ", ")))
	}
	return strings.Join(texts, "; ")
}

func listTable(path api.PolicyPath) table {
	mark := ""
	if path.Active {
		mark = ", active"
	}
	t := table{
		title: fmt.Sprintf("Path %s (%s, preference %d%s): %s", path.Name, path.Action,
			path.Preference, mark, path.Why),
		columns: []string{"LIST", "STATE", "SHARE", "PACKETS", "BYTES", "HEADER", "FLOW",
			"SEGMENTS"},
		wide: []string{"WEIGHT", "REDUNDANCY", "REDUCED"},
	}
	for _, l := range path.Lists {
		t.add(l.Name, l.State, fmt.Sprintf("%.0f%%", 100*l.Share), l.Packets, l.Bytes,
			l.HeaderBytes, orDash(unlessZero(int(l.Flow))), lists.Join(l.Segments, " "), l.Weight,
			l.Redundancy, l.Reduced)
	}
	return t
}

// policySwitch makes the commands that take a list out of use and bring it back.
func (a *app) policySwitch(verb string, state config.ListState, short,
	inverse string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " POLICY LIST", Short: short,
		Long: short + `. The policy changes to its best path that is still valid in one step: no packet sees half of
it. The change survives restarts of the agent.`,
		Example: "  sextant lab exec policies ingress -- sextant policy " + verb +
			" hosts north",
		Annotations:       seeAlso("sextant policy "+inverse, "sextant policy show"),
		Args:              takes("POLICY", "LIST"),
		ValidArgsFunction: a.completeLists,
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			changes, err := a.agent().SetList(ctx, args[0], args[1], api.ListSpec{State: state})
			if err != nil {
				return err
			}
			if err := a.showChanges(changes); err != nil || state == config.ListUp {
				return err
			}
			return a.warnIfInvalid(ctx, args[0])
		}),
	}
}

// warnIfInvalid says that a policy has no valid path any more.
func (a *app) warnIfInvalid(ctx context.Context, name string) error {
	policies, err := a.agent().Policies(ctx)
	for _, p := range policies {
		if p.Name == name && p.ActivePath == "" {
			a.say("policy %s has no valid path any more; %s", name,
				strings.TrimPrefix(activeText(p), "none: "))
		}
	}
	return err
}

// completePolicies offers the names of policies for the first argument.
func (a *app) completePolicies() cobra.CompletionFunc {
	return offers(a, (*api.Client).Policies, func(p api.Policy) (string, string) {
		return p.Name, orDash(p.ActivePath)
	})
}

// completeLists offers the names of policies, then those of the policy's lists.
func (a *app) completeLists(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completePolicies()(cmd, args, word)
	}
	return a.ask(cmd, func(ctx context.Context, agent *api.Client) ([]string, error) {
		policies, err := agent.Policies(ctx)
		var names []string
		for _, p := range policies {
			for _, path := range p.Paths {
				for _, l := range path.Lists {
					if name := l.Name + "\t" + string(l.State); p.Name == args[0] &&
						!slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			}
		}
		return names, err
	})
}
