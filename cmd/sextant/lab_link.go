package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/lab"
	"sextant/lab/linkemu"
	"sextant/lab/netem"
)

func (a *app) labLink() *cobra.Command {
	return noun("link", "Links of a lab: delay, loss, rate; cut and restored",
		seeAlso("sextant lab up"),
		a.labLinkList(), a.labLinkSet(), a.labLinkCut(), a.labLinkRestore())
}

func (a *app) labLinkList() *cobra.Command {
	return &cobra.Command{
		Use: "list LAB", Short: "List the links of a lab, their impairments and counters",
		Long: `List the links of a lab by direction: impairments, and how many packets came, were lost, dropped by a full queue, and
were late. LATE is how much later than decided packets left: the median and the 99th percentile.`,
		Example: "  sextant lab link list protection\n  sextant lab link list " +
			"protection -o json",
		Annotations:       seeAlso("sextant lab link set"),
		Args:              takes("LAB"),
		ValidArgsFunction: a.completeLabs,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := openLab(args[0])
			if err != nil {
				return err
			}
			return answered(a, linksView)(l.LinkStates(cmd.Context()))
		},
	}
}

func linksView(states []lab.LinkState) view {
	t := table{columns: []string{"FROM", "TO", "WIRE", "DOES", "PACKETS", "LOST", "DROPPED",
		"LATE"},
		wide: []string{"DUPLICATED", "REORDERED", "CUT", "UNDERWAY", "FAULTS"}}
	v := view{}
	for _, s := range states {
		if len(s.Directions) == 0 {
			t.add(s.Ends[0], s.Ends[1], "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-")
			v.names = append(v.names, s.Ends[0]+"--"+s.Ends[1])
		}
		for _, d := range s.Directions {
			c := d.Counters
			t.add(d.From, d.To, s.Wire, d.Profile, c.Packets, c.Lost, c.Dropped, lateness(d),
				c.Duplicated, c.Reordered, c.Cut, d.UnderWay, d.Overruns+d.TooLong+d.Unsent)
			v.names = append(v.names, d.From)
		}
	}
	v.value, v.tables = api.List[lab.LinkState]{Items: states}, tables{t}
	return v
}

func lateness(d linkemu.DirectionStatus) string {
	if d.LateMost == 0 {
		return "-"
	}
	return fmt.Sprintf("%s %s", d.LateMedian.Round(100*time.Nanosecond),
		d.LateP99.Round(100*time.Nanosecond))
}

const linkNames = `LINK is an end, NODE:INTERFACE, for what this end sends; or NODE--NODE, for both directions of all links between two
nodes.`

func (a *app) labLinkSet() *cobra.Command {
	return &cobra.Command{
		Use:   "set LAB LINK QUANTITY VALUE...",
		Short: "Change delay, loss or rate of a link while it runs",
		Long: `Change the impairments for packets that come from now on; packets under way keep theirs. ` + linkNames + `
Quantities are ` + strings.Join(netem.Keys, ", ") + `, as in lab files; what is not named stays.`,
		Example: `  sextant lab link set protection ingress:l1 delay 20ms loss 5%
  sextant lab link set protection ingress--p1 rate 10mbit`,
		Annotations:       seeAlso("sextant lab link list", "sextant lab link cut"),
		Args:              atLeast("LAB", "LINK", "QUANTITY", "VALUE"),
		ValidArgsFunction: a.completeLinks,
		RunE: func(cmd *cobra.Command, args []string) error {
			words := args[2:]
			if len(words)%2 != 0 {
				return usageErrorf("%s has no value; write pairs such as: delay 20ms loss 5%%",
					words[len(words)-1])
			}
			return a.changeLinks(cmd, args, lab.LinkChange{Profile: func(p *netem.Profile) error {
				for i := 0; i < len(words); i += 2 {
					if err := p.Set(words[i], words[i+1]); err != nil {
						return usageErrorf("%s %s: %w", words[i], words[i+1], err)
					}
				}
				return nil
			}})
		},
	}
}

func (a *app) labLinkCut() *cobra.Command {
	var carrier bool
	cmd := &cobra.Command{
		Use: "cut LAB LINK", Short: "Drop all packets of a link",
		Long: `Drop all packets of a link without a signal, as behind a switch: the interfaces keep their carrier unless
--carrier is given. ` + linkNames,
		Example:           "  sextant lab link cut protection ingress--p1",
		Annotations:       seeAlso("sextant lab link restore"),
		Args:              takes("LAB", "LINK"),
		ValidArgsFunction: a.completeLinks,
		RunE: func(cmd *cobra.Command, args []string) error {
			change := lab.LinkChange{Profile: func(p *netem.Profile) error {
				p.Cut = true
				return nil
			}}
			if carrier {
				change.Carrier = new(bool)
			}
			return a.changeLinks(cmd, args, change)
		},
	}
	cmd.Flags().BoolVar(&carrier, "carrier", false,
		"take the carrier of the interfaces away too, as a cut fibre does")
	return cmd
}

func (a *app) labLinkRestore() *cobra.Command {
	return &cobra.Command{
		Use: "restore LAB LINK", Short: "Restore a link that was cut",
		Long:              "Restore a link that was cut, with its former impairments. " + linkNames,
		Example:           "  sextant lab link restore protection ingress--p1",
		Annotations:       seeAlso("sextant lab link cut"),
		Args:              takes("LAB", "LINK"),
		ValidArgsFunction: a.completeLinks,
		RunE: func(cmd *cobra.Command, args []string) error {
			on := true
			return a.changeLinks(cmd, args, lab.LinkChange{
				Profile: func(p *netem.Profile) error { p.Cut = false; return nil }, Carrier: &on,
			})
		},
	}
}

func (a *app) changeLinks(cmd *cobra.Command, args []string, change lab.LinkChange) error {
	l, err := openLab(args[0])
	if err != nil {
		return err
	}
	return labError(l.ChangeLinks(cmd.Context(), args[1], change))
}

// completeLinks offers the labs, then the ends of the links of one.
func (a *app) completeLinks(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeLabs(cmd, args, word)
	}
	l, err := lab.Open(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 1 {
		return netem.Keys, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, link := range l.Links {
		names = append(names, link.Ends[0], link.Ends[1])
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// labWire carries the packets of a lab's user-space wires; the lab starts it.
func (a *app) labWire() *cobra.Command {
	return &cobra.Command{
		Use: "wire FILE", Short: "Carry the packets of a lab's links; the lab runs this itself",
		Hidden:      true,
		Example:     "  sextant lab wire wire.json",
		Annotations: seeAlso("sextant lab up", "sextant lab link"),
		Args:        takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return linkemu.Run(cmd.Context(), args[0])
		},
	}
}
