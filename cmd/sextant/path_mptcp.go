package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/agent/subflows"
	"sextant/packet/cflb"
)

// mptcpFlags are how connections get subflows.
type mptcpFlags struct {
	probeFlags
	after    uint64
	subflows int // that a controller gives paths; 0: paths are those of the flags
}

func (a *app) pathMPTCP() *cobra.Command {
	f := mptcpFlags{}
	cmd := &cobra.Command{
		Use:   "mptcp [--next-hops N,N,... --key KEY | --subflows N]",
		Short: "Give MPTCP connections of this host a subflow on each path, or on the best ones",
		Long: `Give MPTCP connections that this host opens a subflow on each equal-cost path, through routers
with controllable load balancing (CFLB), by the source ports that take these paths. It runs until
it is interrupted; what it opened stays.

With --subflows the controller is asked: each connection gets so many subflows beside the first, by
the paths that are the best ones at the time, and the controller counts them there. The paths are
renewed while the connection lives; a subflow that is to have another one is ended, and opened there.

It is a path manager in user space: the kernel has to leave them to one before connections are
opened (sysctl -w net.mptcp.path_manager=userspace, or net.mptcp.pm_type=1 before Linux 6.15), in
this network namespace. Connections of the kernel's own path manager, and those that others opened
to this host, are left alone. A connection gets subflows when the other end has acknowledged --after
bytes; a subflow that ends while its connection lives is replaced, after a second, or later and later
up to a minute where none is established. One that gets no answers for some 6 s, while another one of
its connection does, is ended. The other end has to admit subflows: ip mptcp limits set
subflows 8. Started again, it goes on with the connections that it finds. It needs root. Role subflows
of the node file does the same in the agent, with other subflows for each destination.`,
		Example: "  sextant path mptcp --next-hops 7 --fields source-port --radix 8 " +
			"--key 000102030405060708090a0b0c0d0e0f\n" +
			"  sextant path mptcp --subflows 2",
		Annotations: seeAlso("sextant path subflows", "sextant path run", "sextant path probe",
			"sextant path placed"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, _ := a.controllerSocket(cmd)
			return a.manageSubflows(cmd.Context(), f,
				api.NewClientOf("controller", "sextant controller -f FILE", socket))
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	_ = flags.MarkHidden("protocol") // it is TCP
	flags.StringVar(&f.nextHops, "next-hops", "", "how many next hops each router has")
	flags.IntVar(&f.subflows, "subflows", 0,
		"how many subflows the controller gives paths; 0: one on each path of --next-hops")
	flags.Uint64Var(&f.after, "after", 1<<20, "bytes after which a connection gets subflows")
	return cmd
}

// settings are what the flags ask for.
func (f *mptcpFlags) settings(c *api.Client) (s subflows.Settings, err error) {
	s.AfterBytes = f.after
	rule := subflows.Rule{Scheduled: f.subflows}
	if f.subflows < 0 || f.subflows > subflows.SlotsMax {
		return s, usageErrorf("--subflows %d: write 1 to %d", f.subflows, subflows.SlotsMax)
	}
	if f.subflows > 0 {
		if f.nextHops != "" {
			return s, usageErrorf("--subflows asks the controller for paths, and --next-hops " +
				"says which there are; leave one out")
		}
		s.Controller = func() (*api.Client, error) { return c, nil }
		s.Rules = []subflows.Rule{rule}
		return s, nil
	}
	codec, err := f.codec()
	if err != nil {
		return s, err
	}
	if fields := codec.Parts().Fields; fields != cflb.SourcePort && fields != cflb.BothPorts {
		return s, usageErrorf("--fields %s: subflows are steered by source-port or ports", fields)
	}
	rule.IPv4, rule.IPv6 = codec, codec
	if rule.Choices, err = f.choices(); err != nil {
		return s, err
	}
	s.Rules = []subflows.Rule{rule}
	if _, err := subflows.New(s.Rules, 0, 0); err != nil {
		return s, usageErrorf("--next-hops %s: %w", f.nextHops, err)
	}
	return s, nil
}

func (a *app) manageSubflows(ctx context.Context, f mptcpFlags, c *api.Client) error {
	settings, err := f.settings(c)
	if err != nil {
		return err
	}
	say := func(text string) { a.say("path mptcp: %s", text) }
	manager, err := subflows.Open(subflows.Log{Note: say, Warn: say}, settings)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	say("connections get subflows")
	for _, problem := range subflows.Problems() {
		say("warning: " + problem)
	}
	return manager.Run(ctx)
}
