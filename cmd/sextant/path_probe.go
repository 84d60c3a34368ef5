package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/pathtrace"
	"sextant/packet/lists"
)

// probeFlags are how the paths to a destination are probed.
type probeFlags struct {
	selectorFlags
	nextHops, source string
	port             uint16
	options          pathtrace.Options
}

func (a *app) pathProbe() *cobra.Command {
	f := probeFlags{}
	cmd := &cobra.Command{
		Use:   "probe ADDRESS --next-hops N,N,... --key KEY",
		Short: "Send packets along each path, and find the link that loses them",
		Long: `Send packets along each equal-cost path to a host, through routers with controllable load
balancing (CFLB), and say which routers a path crosses, how many packets arrive, and which link
loses the others.

--next-hops says for one router after the other how many next hops it has for the destination, 1
where it has no choice. Probes are SYNs of TCP, answered by the host with RST or, if something
listens, SYN-ACK, after which this kernel resets. Routers answer with Time Exceeded; where losses
begin is seen from them, at one probe a second and router. A link that loses packets on the way back
alone shows as loss of all paths.

It ends with 0 if nothing is lost, with 1 if a path loses packets. It needs root.`,
		Example: "  sextant path probe 10.3.1.3 --next-hops 2,2 --fields source-port --radix 4 " +
			"--key 000102030405060708090a0b0c0d0e0f",
		Annotations: seeAlso("sextant path run", "sextant path encode", "sextant doctor"),
		Args:        takes("ADDRESS"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.probePaths(f, args[0])
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	_ = flags.MarkHidden("protocol") // it is TCP
	flags.StringVar(&f.nextHops, "next-hops", "", "how many next hops each router has")
	flags.StringVar(&f.source, "source", "", "own address; by default that of the route")
	flags.Uint16Var(&f.port, "port", 80, "port of TCP at the destination")
	flags.IntVar(&f.options.Probes, "count", 30, "probes along each path, 1 to 1000")
	flags.IntVar(&f.options.Routers, "max-routers", 30, "routers that a path has at most, 1 to 63")
	flags.DurationVar(&f.options.Wait, "wait", 500*time.Millisecond, "for answers")
	return cmd
}

// plan is what the flags ask for.
func (f *probeFlags) plan(to string) (p pathtrace.Plan, err error) {
	if p.Codec, err = f.codec(); err != nil {
		return p, err
	}
	if p.Dst, err = netip.ParseAddr(to); err != nil {
		return p, usageErrorf("%q is no address", to)
	}
	if f.options.Probes < 1 || f.options.Probes > 1000 {
		return p, usageErrorf("--count %d: it has to be 1 to 1000", f.options.Probes)
	}
	if f.options.Routers < 1 || f.options.Routers > 63 {
		return p, usageErrorf("--max-routers %d: it has to be 1 to 63", f.options.Routers)
	}
	p.Port, p.Seed = f.port, pathtrace.NewSeed()
	if p.Choices, err = f.choices(); err != nil {
		return p, err
	}
	if _, err := p.Paths(); err != nil {
		return p, usageErrorf("--next-hops %s: %w", f.nextHops, err)
	}
	if f.source != "" {
		if p.Src, err = netip.ParseAddr(f.source); err != nil || p.Src.Is4() != p.Dst.Is4() {
			return p, usageErrorf("--source %q is no address of the IP version of %s", f.source,
				p.Dst)
		}
		return p, nil
	}
	p.Src, err = pathtrace.SourceTo(p.Dst)
	return p, err
}

// choices reads how many next hops each router has.
func (f *probeFlags) choices() (list []int, err error) {
	for word := range strings.SplitSeq(f.nextHops, ",") {
		n, err := strconv.ParseUint(word, 10, 8)
		if err != nil || n < 1 {
			return nil, usageErrorf("--next-hops %q: write how many next hops each router has, "+
				"like 2,2", f.nextHops)
		}
		list = append(list, int(n))
	}
	return list, nil
}

// pace is between probes for one router: Linux answers one a second after a burst of about two.
const pace = 1100 * time.Millisecond

func (a *app) probePaths(f probeFlags, to string) error {
	plan, err := f.plan(to)
	if err != nil {
		return err
	}
	wire, err := pathtrace.OpenSockets(plan.Dst, "")
	if err != nil {
		return err
	}
	defer wire.Close()
	f.options.Pace = pace
	result, err := pathtrace.Run(wire, plan, f.options)
	if err != nil {
		return err
	}
	if err := a.show(probeView(plan, result)); err != nil {
		return err
	}
	return failedIf(len(result.Lossy) > 0)
}

// probedPath is a path in JSON.
type probedPath struct {
	Choices  []int    `json:"choices"` // index of the next hop at each router
	Routers  []string `json:"routers"` // and the destination, if it answered; "" for a silent one
	Sent     int      `json:"sent"`
	Answered int      `json:"answered"`
}

// probedLink is a link that loses packets.
type probedLink struct {
	From  string  `json:"from"`
	To    string  `json:"to"` // "" if nothing behind it answers
	Paths [][]int `json:"paths"`
}

type probed struct {
	Paths []probedPath `json:"paths"`
	Links []probedLink `json:"lossyLinks"`
	// which lose packets, at a link that could not be told
	Unknown [][]int `json:"lossyPaths"`
}

func probeView(plan pathtrace.Plan, r pathtrace.Result) view {
	all := probed{Paths: []probedPath{}, Links: []probedLink{}, Unknown: [][]int{}}
	t := table{columns: []string{"NEXT-HOPS", "SENT", "ANSWERED", "LOSS", "ROUTERS"}}
	for _, path := range r.Paths {
		one := probedPath{Choices: path.Choices, Routers: []string{}, Sent: path.Sent,
			Answered: path.Answered}
		for _, hop := range path.Hops {
			name := ""
			if hop.IsValid() {
				name = hop.String()
			}
			one.Routers = append(one.Routers, name)
		}
		all.Paths = append(all.Paths, one)
		t.add(choicesText(path.Choices), path.Sent, path.Answered,
			fmt.Sprintf("%.0f %%", 100*path.Loss()), strings.Join(one.Routers, " "))
	}
	prose := ""
	at := map[[2]string]int{}
	for _, lossy := range r.Lossy {
		path := all.Paths[lossy]
		if r.Onset < 0 {
			all.Unknown = append(all.Unknown, path.Choices)
			prose += "Path " + choicesText(path.Choices) + " loses packets, at which link could " +
				"not be told.\n"
			continue
		}
		link := [2]string{plan.Src.String()}
		if r.Onset > 0 && r.Onset <= len(path.Routers) {
			link[0] = path.Routers[r.Onset-1]
		}
		if r.Onset < len(path.Routers) {
			link[1] = path.Routers[r.Onset]
		}
		i, known := at[link]
		if !known {
			i = len(all.Links)
			at[link] = i
			all.Links = append(all.Links, probedLink{From: link[0], To: link[1]})
		}
		all.Links[i].Paths = append(all.Links[i].Paths, path.Choices)
	}
	for _, link := range all.Links {
		to := " to " + link.To
		if link.To == "" {
			to = " to its next hop, which does not answer,"
		}
		paths := lists.Map(link.Paths, choicesText)
		prose += fmt.Sprintf("The link from %s%s loses packets: paths %s.\n", link.From, to,
			strings.Join(paths, " and "))
	}
	if len(r.Lossy) == 0 {
		prose += "No path loses more packets than others.\n"
	}
	return view{value: all, tables: tables{t}, prose: prose + "\n"}
}

func choicesText(choices []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(choices), " ", ","), "[]")
}
