package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/pathtrace"
	"sextant/agent/subflows"
	"sextant/controller"
	"sextant/linux"
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
subflows 8. Started again, it manages the connections that are opened from then on. It needs root.`,
		Example: "  sextant path mptcp --next-hops 7 --fields source-port --radix 8 " +
			"--key 000102030405060708090a0b0c0d0e0f\n" +
			"  sextant path mptcp --subflows 2",
		Annotations:       seeAlso("sextant path run", "sextant path probe", "sextant path placed"),
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var c *controller.Client
			if f.subflows > 0 {
				c = a.controller(cmd)
			}
			return a.manageSubflows(cmd.Context(), f, c)
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

// subflowsMax is how many subflows the kernel lets a connection have beside the first.
const subflowsMax = 8

// manager is what the flags ask for.
func (f *mptcpFlags) manager() (*subflows.Manager, error) {
	if f.subflows < 0 || f.subflows > subflowsMax {
		return nil, usageErrorf("--subflows %d: write 1 to %d", f.subflows, subflowsMax)
	}
	if f.subflows > 0 {
		if f.nextHops != "" {
			return nil, usageErrorf("--subflows asks the controller for paths, and --next-hops " +
				"says which there are; leave one out")
		}
		return subflows.NewScheduled(f.subflows, f.after), nil
	}
	codec, err := f.codec()
	if err != nil {
		return nil, err
	}
	if fields := codec.Parts().Fields; fields != cflb.SourcePort && fields != cflb.BothPorts {
		return nil, usageErrorf("--fields %s: subflows are steered by source-port or ports", fields)
	}
	plan := pathtrace.Plan{Codec: codec, Seed: pathtrace.NewSeed()}
	if plan.Choices, err = f.choices(); err != nil {
		return nil, err
	}
	paths, err := plan.Paths()
	if err != nil {
		return nil, usageErrorf("--next-hops %s: %w", f.nextHops, err)
	}
	if len(paths) > subflowsMax {
		return nil, usageErrorf("--next-hops %s: %d paths; a connection has at most %d subflows",
			f.nextHops, len(paths), subflowsMax)
	}
	return subflows.New(plan, f.after)
}

// Pauses of the path manager.
const (
	lookAtBytes = 100 * time.Millisecond
	lookAtAll   = subflows.Pause // at what could not be opened
)

func (a *app) manageSubflows(ctx context.Context, f mptcpFlags, c *controller.Client) error {
	m, err := f.manager()
	if err != nil {
		return err
	}
	paths := &scheduledPaths{app: a, client: c}
	heard, err := linux.OpenMPTCP()
	if err != nil {
		return err
	}
	defer heard.Close()
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	a.say("path mptcp: connections get subflows")
	a.warnOfManager()
	var looked time.Time // at sockets
	for ctx.Err() == nil {
		pause := lookAtAll
		if m.Waiting() {
			pause = lookAtBytes
		}
		events, err := heard.Next(pause)
		if errors.Is(err, linux.ErrMPTCPLost) {
			a.say("path mptcp: %v; connections among them keep the subflows that they have", err)
		} else if err != nil {
			return err
		}
		for _, e := range events {
			m.Hear(e)
		}
		var sockets map[linux.TCPEnds]linux.TCPProgress
		if look := m.Waiting() || time.Since(looked) >= lookAtAll && len(m.Open()) > 0; look {
			looked = time.Now()
			if sockets, err = linux.TCPSockets(); err != nil {
				return err
			}
		}
		a.endStalled(m.Stalled(sockets), paths)
		if err := a.openSubflows(ctx, m, sockets, paths); err != nil {
			return err
		}
	}
	return nil
}

// warnOfManager says what keeps connections that are opened now from getting subflows.
func (a *app) warnOfManager() {
	for _, s := range []struct{ name, wrong, means string }{
		{"net.mptcp.enabled", "0", "connections do not speak MPTCP"},
		{"net.mptcp.pm_type", "0", "connections are left to the kernel's own path manager"},
	} {
		if value, err := linux.ReadSysctl(s.name); err == nil && value == s.wrong {
			a.say("path mptcp: warning: %s is %s in this network namespace: %s; write 1, before "+
				"they are opened: sysctl -w %s=1", s.name, value, s.means, s.name)
		}
	}
}

// endStalled ends subflows; news of that makes them due again.
func (a *app) endStalled(stalled []subflows.Subflow, paths *scheduledPaths) {
	for _, s := range stalled {
		a.say("path mptcp: subflow from %s to %s gets no answers on path %s: it is ended", s.Local,
			s.Remote, paths.text(s))
		paths.say(linux.DestroySubflow(s.Token, s.Local, s.Remote))
	}
}

func (a *app) openSubflows(ctx context.Context, m *subflows.Manager,
	sockets map[linux.TCPEnds]linux.TCPProgress, paths *scheduledPaths) error {
	due, err := m.Due(sockets, time.Now())
	if err != nil {
		return err
	}
	if paths.client != nil {
		paths.keep(ctx, m)
		due = paths.give(ctx, due)
	}
	for _, s := range due {
		err := linux.CreateSubflow(s.Token, s.ID, s.Local, s.Remote)
		switch {
		case err == nil:
			m.Opened(s)
			a.say("path mptcp: subflow from %s to %s takes path %s", s.Local, s.Remote,
				paths.text(s))
		case errors.Is(err, syscall.EINVAL): // of the kernel's path manager
			m.Leave(s.Token)
		default:
			a.say("path mptcp: path %s: %v", paths.text(s), err)
		}
	}
	return nil
}
