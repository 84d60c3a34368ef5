package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/agent/doctor"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux/facts"
)

// examination says what facts a diagnosis needs.
type examination struct {
	Node  *config.Node
	BPF   string // directory of pins; "" is the agent's choice
	Quick bool   // no program is loaded, no process looked at, no packet sent
	// from which sources choose at a node with role cflb
	NextHops []api.NextHops
}

func (a *app) doctorCommand() *cobra.Command {
	var file, bpf string
	var quick bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Diagnose this node's set-up: faults, causes and remedies",
		Long: `Diagnose this node's set-up: each fault with its cause and remedy.

The node is that of the running agent, or of the file given with --node; with both, the file counts, and the agent adds
its state. Nothing is changed. Run it where the agent runs: in its network namespace, as root.

The exit code is 0 without faults, 1 with faults. Notable findings do not count as faults.`,
		Example: `  sextant lab exec quickstart edge -- sextant doctor
  sextant doctor --node /etc/sextant/node.yaml -o json`,
		Annotations: seeAlso("sextant check", "sextant status", "sextant support-bundle"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := a.diagnose(cmd, file, bpf, quick)
			if err != nil {
				return err
			}
			if err := a.show(findingsView(findings)); err != nil {
				return err
			}
			return failedIf(slices.ContainsFunc(findings, doctor.Finding.Sick))
		},
	}
	nodeFlag(cmd, &file)
	bpfFlag(cmd, &bpf)
	cmd.Flags().BoolVar(&quick, "quick", false,
		"leave out what takes longer: sockets, processes, the versions of pinned programs, "+
			"probes of "+
			"routers")
	return cmd
}

func (a *app) diagnose(cmd *cobra.Command, file, bpf string, quick bool) ([]doctor.Finding, error) {
	node, running, err := a.patient(cmd, file)
	if err != nil {
		return nil, err
	}
	x := examination{Node: node, BPF: pinsOf(a.bpf(bpf), running), Quick: quick}
	if running != nil && node.CFLB != nil {
		ctx, cancel := a.withTimeout(cmd)
		defer cancel()
		if x.NextHops, err = a.agent().NextHops(ctx); err != nil {
			return nil, err
		}
		running.Unnameable = unnameable(node.CFLB, x.NextHops)
	}
	facts, err := a.examine(x)
	facts.Running = running
	return doctor.Diagnose(node, facts, version), err
}

// unnameable lists the destinations with more next hops than selectors name.
func unnameable(c *config.CFLB, list []api.NextHops) (all []facts.Unnameable) {
	for _, of := range list {
		if s := c.SelectorOf(of.Prefix.Addr()); s != nil &&
			len(of.Hops) > min(s.Radix, datapath.CFLBNextHops) {
			all = append(all, facts.Unnameable{Prefix: of.Prefix, NextHops: len(of.Hops)})
		}
	}
	return all
}

// pinsOf is the directory of pins: the one that is named, else the agent's own, else "" for the one
// by the node's name.
func pinsOf(named string, running *facts.Running) string {
	if named == "" && running != nil {
		return running.PinDir
	}
	return named
}

// patient finds the node that is meant, and asks its agent if one answers.
func (a *app) patient(cmd *cobra.Command, file string) (*config.Node, *facts.Running, error) {
	var node *config.Node
	if file != "" {
		f, err := a.readNodeFile(cmd.Context(), file)
		if err != nil {
			return nil, nil, err
		}
		node = f.node
		if !cmd.Flags().Changed("socket") {
			a.socket = node.API.Socket
		}
	}
	running, err := a.running(cmd.Context())
	if errors.Is(err, api.ErrUnreachable) && node != nil {
		return node, nil, nil
	}
	if err == nil && node == nil {
		node, err = a.runningNode(cmd.Context())
	}
	if errors.Is(err, api.ErrUnreachable) {
		err = fmt.Errorf("%w, or name the node file: %s --node FILE", err, cmd.CommandPath())
	}
	return node, running, err
}

// runningNode is the configuration that runs; its secret is replaced, for no diagnosis needs it.
func (a *app) runningNode(ctx context.Context) (*config.Node, error) {
	text, err := a.lister().Config(ctx, true)
	if err != nil {
		return nil, err
	}
	return config.ParseOwn("the running configuration", text)
}

// running asks the agent what it sees.
func (a *app) running(ctx context.Context) (*facts.Running, error) {
	status, err := a.fullStatus(ctx)
	if err != nil {
		return nil, err
	}
	services, err := a.lister().Services(ctx, "", "")
	if err != nil {
		return nil, err
	}
	r := &facts.Running{Node: status.Node, Version: status.Version, Warnings: status.Warnings,
		Drops:  map[string]uint64{},
		PinDir: status.PinDirectory}
	for _, p := range status.Programs {
		if p.Interface != "" && p.Mode != "" {
			r.Programs = append(r.Programs, facts.Program{Interface: p.Interface, ID: p.ID})
		}
	}
	for _, c := range status.Counters {
		for _, d := range c.Drops {
			r.Drops[string(c.Role)+" "+d.Reason] = d.Packets
		}
		switch c.Role {
		case api.Host:
			r.SIDPackets = c.TakenPackets + c.ForwardedPackets() + c.DroppedPackets()
		case api.Edge:
			r.FlowCache = map[string]uint64{}
			for _, e := range c.FlowCache {
				r.FlowCache[e.Event] = e.Packets
			}
		}
		if t := c.Telemetry; t != nil {
			r.Telemetry, r.LostReports = map[string]uint64{}, t.LostReports
			for _, p := range t.Packets {
				r.Telemetry[p.Outcome] = p.Packets
			}
		}
		for _, v := range c.VRFs {
			r.VRFs = append(r.VRFs, facts.VRFTraffic{VRF: v.VRF, Here: v.HerePackets,
				Strays: v.StrayPackets})
		}
	}
	for _, s := range services {
		if h := s.Host; h != nil {
			r.Learning.Opened += h.Established
			r.Learning.ByEdge += h.ByEdge
			r.Learning.NotRouted += h.NotRouted
		}
		if s.Edge == nil {
			continue
		}
		for _, b := range s.Edge.Backends {
			if b.Health != nil && b.Health.Status == "failing" {
				r.Failing = append(r.Failing, facts.Failing{Service: s.Name, Backend: b.Name,
					Error: b.Health.LastError})
			}
		}
	}
	return r, nil
}

func findingsView(findings []doctor.Finding) view {
	v := view{value: api.List[doctor.Finding]{Items: findings}}
	t := table{columns: []string{"SEVERITY", "CODE", "ON"}}
	if len(findings) == 0 {
		v.prose = "Nothing is wrong with what could be seen.\n"
		return v
	}
	for _, f := range findings {
		v.names = append(v.names, f.Code)
		t.add(f.Severity, f.Code, f.On)
		v.prose += fmt.Sprintf("%s: %s: %s\n  why:  %s\n  fix:  %s\n", f.Severity, f.On, f.What,
			f.Cause, f.Mend)
	}
	v.prose += "\n"
	v.tables = tables{t}
	return v
}
