package main

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// agentOptions are what the command line says about an agent besides its node file.
type agentOptions struct {
	Node    *config.Node
	BPF     string // directory on the bpf file system for what is pinned; "" is the agent's choice
	Version string
	Log     *slog.Logger
	// BreakConnections lets the node file differ from what ran before in a way that ends
	// connections.
	BreakConnections bool
}

func (a *app) agentCommand() *cobra.Command {
	var file, bpf, format string
	cmd := &cobra.Command{
		Use: "agent -f FILE", Short: "Run the agent of this node, in all its roles",
		Long: `Run the agent of this node. It loads the eBPF programs, takes over from an agent that ran before without losing a
packet, and then serves its API on a Unix socket. If it can't run it says why in one line, and changes nothing.
Packets are forwarded on when it ends, whatever ended it: only "sextant unload" detaches the programs.

Changes made while it runs are kept in the node file's state directory. They hold after a restart as long as the node file
is the same, or the one that was applied last; another node file starts again. One that would end connections of the
programs that forward on is refused; with --break-connections it is not. It needs root, or CAP_BPF, CAP_NET_ADMIN,
CAP_PERFMON and, to take over, CAP_SYS_ADMIN.`,
		Example:     "  sextant agent -f /etc/sextant/node.yaml",
		Annotations: seeAlso("sextant check", "sextant status", "sextant unload"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(format)
			if err != nil {
				return err
			}
			if file == "" {
				return usageErrorf("no node file is given; name one with -f FILE")
			}
			if file == "-" {
				file = "/dev/stdin"
			}
			node, err := api.LoadNode(file)
			if err != nil {
				return err
			}
			return a.runAgent(cmd.Context(), agentOptions{
				Node: node, BPF: a.bpf(bpf), Version: version, Log: log, BreakConnections: a.breaks,
			})
		},
	}
	fileFlag(cmd, &file)
	bpfFlag(cmd, &bpf)
	breakFlag(cmd, &a.breaks)
	logFlag(cmd, &format)
	return cmd
}

func logFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "log-format", "text", "text for people, json for programs")
	complete(cmd, "log-format", "text", "json")
}

func bpfFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "bpf", "",
		"directory on the bpf file system where programs and tables are pinned (or SEXTANT_BPF)")
}

// bpf is the directory that the command line or the environment names.
func (a *app) bpf(flag string) string {
	return cmp.Or(flag, a.getenv("SEXTANT_BPF"))
}

// logger writes to stderr: warnings only with -q, all with -v.
func (a *app) logger(format string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	switch {
	case a.verbose > 0:
		options.Level = slog.LevelDebug
	case a.quiet:
		options.Level = slog.LevelWarn
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.stderr, options)), nil
	}
	return nil, usageErrorf("unknown --log-format %q; write text or json", format)
}

func (a *app) unloadCommand() *cobra.Command {
	var file, bpf string
	cmd := &cobra.Command{
		Use: "unload -f FILE", Short: "Detach the programs of this node and remove its tables",
		Long: `Detach the eBPF programs of this node from its interfaces and remove their tables. From then on its packets are the
kernel's, and open connections through this node break. Stop the agent first. A node that has nothing loaded is
unloaded already. --bpf is enough where the node is no head-end, whose policies' numbers are kept as its file says.`,
		Example: "  sextant unload -f /etc/sextant/node.yaml\n" +
			"  sextant unload --bpf /sys/fs/bpf/sextant/edge1",
		Annotations: seeAlso("sextant agent", "sextant status"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, dir, err := a.instance(cmd.Context(), file, bpf)
			if err != nil {
				return err
			}
			if err := a.refuseWhileServed(cmd, node); err != nil {
				return err
			}
			return a.unload(node, dir)
		},
	}
	fileFlag(cmd, &file)
	bpfFlag(cmd, &bpf)
	return cmd
}

// instance finds out which node is meant: by its file, or by the directory of its pins. Either may
// be unknown, not both.
func (a *app) instance(ctx context.Context, file, bpf string) (*config.Node, string, error) {
	dir := a.bpf(bpf)
	if file == "" && dir == "" {
		return nil, "", usageErrorf("which node is not said; name its file with -f FILE, or its " +
			"pins with --bpf DIR")
	}
	if file == "" {
		return nil, dir, nil
	}
	f, err := a.readNodeFile(ctx, file)
	return f.node, dir, err
}

// refuseWhileServed refuses to touch programs of a running agent.
func (a *app) refuseWhileServed(cmd *cobra.Command, node *config.Node) error {
	if node != nil && !cmd.Flags().Changed("socket") {
		a.socket = node.API.Socket
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
	defer cancel()
	status, err := a.agent().Status(ctx)
	if err != nil {
		return nil // nobody answers, so nobody needs the programs
	}
	return &api.Error{Code: api.Conflict,
		Message: "the agent of node " + status.Node + " runs; stop it first"}
}
