// Command sextant is the whole product in one binary: the agent that runs on
// edges and hosts, the commands that talk to it, and the lab to try it in.
//
// Each noun and each verb has a file. A command is a function of an env and
// its arguments, and nothing in this package but main touches the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"sextant/agent"
	"sextant/config"
	"sextant/kernel"
)

// version is set by the linker: -X main.version=...
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	e := processEnv()
	e.runAgent, e.unload = runAgent, unload
	code := run(ctx, e)
	stop()
	os.Exit(code)
}

func runAgent(ctx context.Context, o agentOptions) error {
	return agent.Run(ctx, agent.Options{Node: o.Node, PinDirectory: o.BPF, Version: o.Version, Log: o.Log})
}

// unload detaches what is pinned in the directory, or where the node's agent pins if none is named.
func unload(node *config.Node, dir string) error {
	if dir == "" {
		bpffs, _, err := kernel.BPFFS()
		if err != nil {
			return err
		}
		dir = agent.PinDirectory(bpffs, node.Name)
	}
	return agent.Unload(filepath.Clean(dir))
}
