package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
	"sextant/te/protection"
	"sextant/te/topology"
	"sextant/te/topology/draw"
	"sextant/te/topology/format"
)

func (a *app) protectShow() *cobra.Command {
	var svg string
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show over which links a protection's packets travel, with " +
			"delay and loss of each path",
		Long: `Show over which links a protection's packets travel, with delay and loss of each path.

RTT and LOSS are those of probes that the head-end sends to itself over the path, and back by the egress's routes. COPIES LOST and
ONE WAY are measured at the egress, from the numbers and timestamps of copies, if --egress-agent was given: in the latest seconds,
and as right as both machines' clocks. A path of role trial fell silent and is sent copies again, to see whether the egress gets
them; Trials says when the next silent path is. DELAY (-o wide) is that of the topology.`,
		Example: "  sextant lab exec protect r1 -- sextant protect show video\n" +
			"  sextant lab exec protect r1 -- sextant protect show video --svg video.svg",
		Annotations:       seeAlso("sextant protect list", "sextant policy show", "sextant merge"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeProtections(),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			p, err := a.agent().Protection(ctx, args[0])
			if err != nil {
				return err
			}
			if err := a.show(protectionView(p)); err != nil || svg == "" {
				return err
			}
			return a.drawProtection(ctx, p, svg)
		}),
	}
	cmd.Flags().StringVar(&svg, "svg", "", "draw the paths over the topology into this file")
	return cmd
}

// protectionView is one protection with its paths.
func protectionView(p api.Protection) view {
	var prose strings.Builder
	fmt.Fprintf(&prose, "%s: %s\n\n", p.Name, p.State)
	for _, line := range [][2]string{
		{"Traffic", p.Match},
		{"Way", fmt.Sprintf("from %s to %s, SID %s", p.From, p.To, p.Egress)},
		{"Promise", fmt.Sprintf("%s, %s, %s-disjoint", copiesText(p.Copies),
			plural(uint64(p.Spares), "spare"), p.Disjoint)},
		{"Flows", flowsText(p.Flows) + ", which the egress's merge section has to list"},
		{"Proof", p.Proof},
		{"Reason", p.Reason},
		{"Replaced", replacedText(p.Replaced)},
		{"Trials", trialsText(p.Paths)},
	} {
		if line[1] != "" {
			fmt.Fprintf(&prose, "  %-8s %s\n", line[0], line[1])
		}
	}
	prose.WriteString("\n")
	t := table{
		columns: []string{"PATH", "ROLE", "PROBES", "RTT", "LOSS", "PACKETS", "COPIES LOST",
			"ONE WAY", "WAY"},
		wide: []string{"DELAY", "FLOW", "SEGMENTS", "SIDS", "FAULT"},
	}
	for _, path := range p.Paths {
		t.add(path.List, path.Role, path.Probes,
			textIf(path.RTTMs > 0, fmt.Sprintf("%.2f ms", path.RTTMs)),
			textIf(path.RTTMs > 0, fmt.Sprintf("%.1f %%", path.Loss*100)), path.Packets,
			measured(path.CopyLoss, 100, "%.2f %%"), measured(path.CopyDelayMs, 1, "%.2f ms"),
			wayOf(path.Links), delayOf(path), path.Flow, strings.Join(path.Segments, " "),
			lists.Join(path.SIDs, " "), orDash(path.Fault))
	}
	return view{value: p, prose: prose.String(), tables: tables{t}, names: []string{p.Name}}
}

// replacedText says how other paths came to carry the last time, step by step.
func replacedText(r *api.Replacement) string {
	if r == nil {
		return ""
	}
	ms := func(from, to time.Time) string {
		if from.IsZero() || !to.After(from) {
			return "-" // not known, as after a restart
		}
		return fmt.Sprintf("%.1f ms", to.Sub(from).Seconds()*1e3)
	}
	noticed := "noticed"
	if !r.Heard.IsZero() {
		noticed = "noticed " + ms(r.Heard, r.Noticed) + " after its last answer"
	}
	return fmt.Sprintf("%s: %s, decided %s later, installed %s after that, at %s", r.Because,
		noticed, ms(r.Noticed, r.Decided),
		ms(r.Decided, r.Installed), r.Installed.Format(time.RFC3339))
}

// trialsText says when silent paths are tried again.
func trialsText(paths []api.ProtectedPath) string {
	var texts []string
	for _, p := range paths {
		if p.NextTrial != nil {
			texts = append(texts, fmt.Sprintf("%s is sent copies again at %s; %d failed so far",
				p.List, p.NextTrial.Format(time.RFC3339),
				p.TrialsInVain))
		}
	}
	return strings.Join(texts, ", ")
}

func delayOf(path api.ProtectedPath) string {
	unit, err := format.ParseDelayUnit(path.DelayUnit)
	if err != nil {
		unit = 0
	}
	return delayText(path.Delay, unit)
}

// wayOf joins links that follow each other: "R1>R2>R7".
func wayOf(links []string) string {
	var way strings.Builder
	for i, l := range links {
		_, to, _ := strings.Cut(l, ">")
		if i == 0 {
			way.WriteString(l)
			continue
		}
		way.WriteString(">" + to)
	}
	return way.String()
}

// drawProtection writes the topology with the paths over it.
func (a *app) drawProtection(ctx context.Context, p api.Protection, file string) error {
	t, err := a.agent().Topology(ctx)
	if err != nil {
		return err
	}
	if t.NodeLink == "" {
		return &api.Error{Code: api.Conflict,
			Message: "the agent has no topology to draw: " + t.Problem}
	}
	g, err := format.Read(format.File{Name: t.Source, Text: []byte(t.NodeLink)},
		format.Options{Format: format.NodeLink})
	if err != nil {
		return fmt.Errorf("the agent's topology: %w", err)
	}
	options := draw.Options{Title: fmt.Sprintf("%s: %s to %s, %s", p.Name, p.From, p.To, p.State)}
	for _, path := range p.Paths {
		drawn := draw.Path{Label: fmt.Sprintf("%s %s: %s", path.List, path.Role,
			strings.Join(path.Segments, ", "))}
		for e := range topology.Edge(g.Edges()) {
			if slices.Contains(path.Links, protection.LinkOf(g, e).String()) {
				drawn.Edges = append(drawn.Edges, e)
			}
		}
		options.Paths = append(options.Paths, drawn)
	}
	return a.draws(file, g, options)
}

func copiesText(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}
