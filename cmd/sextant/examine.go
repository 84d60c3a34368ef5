package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"

	"sextant/agent"
	"sextant/config"
	"sextant/datapath"
	"sextant/doctor"
	"sextant/kernel"
)

// bpffsDir is where pins are, whether a bpf file system is mounted there or not.
const bpffsDir = "/sys/fs/bpf"

// examine gathers facts about this machine, in the network namespace of this process. It changes nothing.
func examine(x examination) (doctor.Facts, error) {
	n := x.Node
	query := kernel.Query{Slow: !x.Quick}
	if n.Edge != nil {
		for _, i := range n.Edge.Interfaces {
			query.Interfaces = append(query.Interfaces, i.Name)
		}
		for _, s := range n.Edge.Services {
			for _, b := range s.Backends {
				query.SIDs = append(query.SIDs, b.SID)
			}
		}
	}
	if n.Host != nil {
		for _, i := range n.Host.Interfaces {
			query.Interfaces = append(query.Interfaces, i.Name)
		}
		for _, s := range n.Host.Services {
			query.VIPs = append(query.VIPs, s.VIP)
		}
	}
	query.SIDs = compact(query.SIDs)
	if n.Strays != nil {
		for _, i := range n.Strays.Interfaces {
			query.Interfaces = append(query.Interfaces, i.Name)
		}
		query.VRFs = n.Strays.VRFs
	}
	if n.Edge != nil && n.Edge.FlowCache.Entries > 0 {
		query.Learns, query.Learnt = learns(n.Edge)
	}
	facts := kernel.Facts(query)
	features, capabilities, err := agent.Lacking()
	facts.Kernel.Missing, facts.Kernel.Capabilities = features, capabilities
	if x.Quick || len(capabilities) > 0 || len(features) > 0 {
		return facts, err
	}
	dir := x.BPF
	if dir == "" {
		dir = agent.PinDirectory(bpffsDir, n.Name)
	}
	pins, pinErr := datapath.StalePins(filepath.Clean(dir))
	facts.Pins = pins
	return facts, errors.Join(err, pinErr)
}

// learns are the interfaces by which SYN-ACKs can come to an edge with a flow cache, and a VIP of each family.
func learns(e *config.Edge) (interfaces []string, vips []netip.Addr) {
	for _, i := range e.Interfaces {
		if i.Side != config.External {
			interfaces = append(interfaces, i.Name)
		}
	}
	seen := map[bool]bool{}
	for _, s := range e.Services {
		if !seen[s.VIP.Is4()] && s.Protocol == config.TCP {
			vips = append(vips, s.VIP)
			seen[s.VIP.Is4()] = true
		}
	}
	return interfaces, vips
}

// compact leaves each address once.
func compact(list []netip.Addr) []netip.Addr {
	var once []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, a := range list {
		if !seen[a] {
			once = append(once, a)
		}
		seen[a] = true
	}
	return once
}

// machine describes this machine for support.
func machine(x examination) []part {
	var parts []part
	for _, d := range kernel.Describe() {
		parts = append(parts, part(d))
	}
	dir := x.BPF
	if dir == "" {
		dir = agent.PinDirectory(bpffsDir, x.Node.Name)
	}
	pins, err := datapath.DescribePins(filepath.Clean(dir))
	return append(parts, jsonPart("pins.json", pins, err), logPart())
}

// logLines is how much of the log a bundle takes.
const logLines = "5000"

// logPart is the agent's log, if systemd keeps one.
func logPart() part {
	command := exec.Command("journalctl", "--unit", "sextant", "--lines", logLines, "--no-pager", "--output", "short-iso-precise")
	text, err := command.Output()
	if err != nil {
		err = fmt.Errorf("journalctl: %w", err)
	}
	return part{"agent.log", text, err}
}
