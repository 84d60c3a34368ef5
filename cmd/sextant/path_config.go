package main

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
)

// configOptions are the flags of path config.
type configOptions struct {
	pathFlags
	paths                                int
	target, block, decap, prefix, device string
}

// How path config writes a list.
var configTargets = []string{"linux", "frr", "srh"}

// pathConfig is "sextant path config".
func (a *app) pathConfig() *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "config TOPOLOGY FROM TO",
		Short: "Write disjoint paths as routes for Linux or FRR, or as segment routing headers",
		Long: `Write disjoint paths as routes for Linux or FRR, or as segment routing headers.

SIDs are those of the topology, or are numbered in the block: node i is BLOCK:i+1::, its links' End.X follow from e000 on. Each line
says whether its list is forced: packets take this path and no other. Of the routes for Linux, which have rising metrics, the
first is taken, and the next one when that is deleted.`,
		Example: "  sextant path config zoo/Abilene Seattle New_York --for linux --prefix " +
			"2001:db8:7::/48 --device eth0\n" +
			"  sextant path config zoo/Abilene Seattle New_York --for srh --decap e046",
		Annotations:       seeAlso("sextant path disjoint", "sextant path failure"),
		Args:              takes("TOPOLOGY", "FROM", "TO"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.showConfig(o,
				args)
		},
	}
	o.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.paths, "paths", 2, "how many paths at most; 0 means all there are")
	flags.StringVar(&o.target, "for", "linux",
		"linux (ip route), frr (staticd of FRRouting 9.1 or later) or srh (the header's bytes)")
	flags.StringVar(&o.block, "block", "fcbb:bb00::/32", "SID block of the locator plan")
	flags.StringVar(&o.decap, "decap", "",
		"function at the destination that decapsulates, like e046; none: its node SID")
	flags.StringVar(&o.prefix, "prefix", "2001:db8::/32", "what is to be sent over the paths")
	flags.StringVar(&o.device, "device", "eth0", "interface out of which it leaves")
	complete(cmd, "for", configTargets...)
	return cmd
}

// configItem is a path with its configuration.
type configItem struct {
	sidlist.List
	Text string `json:"configuration"`
}

func (a *app) showConfig(o configOptions, args []string) error {
	if err := oneOf("for", o.target, configTargets); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(o.prefix)
	if err != nil {
		return usageErrorf("--prefix: %q is not a prefix; write it like 2001:db8:7::/48", o.prefix)
	}
	n, q, err := o.open(args)
	if err != nil {
		return err
	}
	plan, err := o.plan(n)
	if err != nil {
		return err
	}
	q.Paths = o.paths
	answer, err := n.engine.Disjoint(q)
	if err != nil {
		return err
	}
	items := []configItem{}
	var text strings.Builder
	for _, p := range answer.Paths {
		item, err := o.configure(plan, p, len(items), prefix)
		if err != nil {
			return err
		}
		items = append(items, item)
		fmt.Fprintln(&text, item.Text)
	}
	if len(items) == 0 {
		return notFoundf("no path leads from %s to %s with these options; see sextant "+
			"path explain", args[1], args[2])
	}
	return a.show(view{value: struct {
		Items []configItem `json:"items"`
	}{items}, prose: text.String()})
}

func (o configOptions) plan(n *network) (sidlist.Plan, error) {
	plan := sidlist.Plan{Graph: n.Graph}
	var err error
	if plan.Block, err = srv6.ParseBlock(o.block); err != nil {
		return plan, usageErrorf("--block: %w", err)
	}
	if o.decap != "" {
		if plan.Decap, err = srv6.ParseCSID(o.decap); err != nil {
			return plan, usageErrorf("--decap: %w", err)
		}
	}
	return plan, nil
}

// configure writes a path; rank is how many are preferred to it.
func (o configOptions) configure(plan sidlist.Plan, p segment.Path, rank int,
	prefix netip.Prefix) (configItem, error) {
	list, err := plan.List(p)
	if err != nil {
		return configItem{}, err
	}
	item := configItem{List: list}
	switch o.target {
	case "linux":
		item.Text = list.Route(prefix, o.device, rank)
	case "frr":
		item.Text = list.FRR(prefix, o.device)
	case "srh":
		const ipv6 = 41
		destination, header, err := list.SRH(ipv6, true)
		if err != nil {
			return configItem{}, err
		}
		item.Text = fmt.Sprintf("destination %s header %s  # %s", destination,
			cmp.Or(hex.EncodeToString(header), "-"), list)
	}
	return item, nil
}
