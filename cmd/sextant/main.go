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
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"sextant/agent"
	"sextant/agent/tracing"
	"sextant/config"
	"sextant/datapath"
	"sextant/experiment"
	"sextant/experiment/churn"
	"sextant/linux"
)

// version is set by the linker: -X main.version=...
var version = "unknown"

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // who asks a second time waits for nothing
	e := processEnv()
	e.runAgent, e.unload, e.demo, e.examine, e.machine = runAgent, unload, demo, examine, machine
	code := run(ctx, e)
	stop()
	os.Exit(code)
}

func runAgent(ctx context.Context, o agentOptions) error {
	traced, err := tracing.Start(ctx, os.Getenv, tracing.Process{Service: "sextant-agent",
		Version: o.Version, Node: o.Node.Name}, o.Log)
	if err != nil {
		return err
	}
	defer traced()
	err = agent.Run(ctx, agent.Options{
		Node: o.Node, PinDirectory: o.BPF, Version: o.Version, Log: o.Log,
		BreakConnections: o.BreakConnections,
	})
	for line := range strings.Lines(datapath.VerifierLog(err)) {
		o.Log.Debug("verifier: " + strings.TrimSpace(line))
	}
	return err
}

// unload detaches what is pinned in the directory, or where the node's agent pins if none is named.
// Of a directory that is named, the node may be nil.
func unload(node *config.Node, dir string) error {
	if dir == "" {
		bpffs, _, err := linux.BPFFS()
		if err != nil {
			return err
		}
		dir = agent.PinDirectory(bpffs, node.Name)
	}
	if node == nil {
		return agent.UnloadPins(filepath.Clean(dir))
	}
	return agent.UnloadNode(filepath.Clean(dir), node.State, node.Name)
}

// How long the demonstration loads the servers: together with the labs, less than a minute.
const (
	demoWarmUp  = 2 * time.Second
	demoRandom  = 16 * time.Second
	demoHunting = 6 * time.Second
	demoChurn   = 5 * time.Second // for each policy
)

// demonstrated is the demonstration in JSON.
type demonstrated struct {
	Hunting *experiment.Hunting  `json:"hunting"`
	Churn   *churn.Demonstration `json:"churn"`
}

// demo has two acts: random choice against service hunting, and servers that leave and return under
// downloads.
func demo(ctx context.Context, o demoOptions) error {
	var console demoConsole
	if o.Say != nil {
		if address, err := console.open(); err != nil {
			o.Say(err.Error())
		} else {
			o.Say("its edge in a browser of this machine, to look at while it runs: " + address)
			defer console.close()
		}
	}
	h, err := experiment.RunHunting(ctx, experiment.HuntingOptions{
		WarmUp: demoWarmUp, Random: demoRandom, Hunting: demoHunting, Say: o.Say,
		Progress: o.Progress, Events: console.event,
	})
	if err != nil {
		return err
	}
	if !o.JSON { // what is known is shown
		if err := h.Write(o.Output); err != nil {
			return err
		}
		fmt.Fprintln(o.Output)
	}
	c, err := churn.Demonstrate(ctx, churn.DemonstrationOptions{Duration: demoChurn, Say: o.Say,
		Progress: o.Progress, Events: console.event})
	if err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(o.Output).Encode(demonstrated{h, c})
	}
	if err := c.Write(o.Output); err != nil {
		return err
	}
	return writeNext(o.Output, typed(os.Args[0], os.Getenv("SUDO_UID") != ""))
}

// typed is how this program was called, so that its hints can be typed too.
func typed(program string, sudo bool) string {
	if sudo {
		return "sudo " + program
	}
	return program
}

// writeNext says what to try after the demonstration.
func writeNext(w io.Writer, program string) error {
	fmt.Fprint(w, "\nWhat to try next:\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, hint := range [][2]string{
		{"lab up quickstart", "a small lab that stays"},
		{`lab exec quickstart client -- sextant loadgen "http://[2001:db8:80::80]/" --rate 200 --service 10ms`, "load through it"},
		{"lab exec quickstart edge -- sextant service list", "what its edge has done"},
		{"lab down quickstart", "nothing of it is left"},
	} {
		fmt.Fprintf(t, "  %s %s\t%s\n", program, hint[0], hint[1])
	}
	return t.Flush()
}
