// Command sextant is the whole product in one binary: the agent that runs on
// edges and hosts, the commands that talk to it, and the lab to try it in.
//
// Each noun and each verb has a file. A command is a function of an env and
// its arguments, and nothing in this package but main touches the process.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sextant/agent"
	"sextant/config"
	"sextant/experiment"
	"sextant/kernel"
)

// version is set by the linker: -X main.version=...
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	e := processEnv()
	e.runAgent, e.unload, e.demo = runAgent, unload, demo
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

// How long the demonstration loads the servers per policy: together with the lab, less than a minute.
const (
	demoWarmUp  = 3 * time.Second
	demoMeasure = 21 * time.Second
)

func demo(ctx context.Context, o demoOptions) error {
	h, err := experiment.RunHunting(ctx, experiment.HuntingOptions{
		WarmUp: demoWarmUp, Measure: demoMeasure, Say: o.Say, Progress: o.Progress,
	})
	if err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(o.Output).Encode(h)
	}
	if err := h.Write(o.Output); err != nil {
		return err
	}
	_, err = fmt.Fprint(o.Output, demoNext)
	return err
}

// demoNext is what to try after the demonstration.
const demoNext = `
What to try next:
  sudo ./sextant lab up examples/quickstart.yaml                                              a small lab that stays
  sudo ./sextant lab exec quickstart client -- curl -i "http://[2001:db8:80::80]/"            a request through it
  sudo ./sextant lab exec quickstart edge -- ./sextant top                                    what its edge does
  sudo ./sextant lab down quickstart
`
