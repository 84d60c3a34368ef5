package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"

	"sextant/agent"
	"sextant/agent/doctor"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
	"sextant/linux/facts"
	"sextant/packet/lists"
)

// bpffsDir is where pins are, whether a bpf file system is mounted there or not.
const bpffsDir = "/sys/fs/bpf"

// examine gathers facts about this machine, in the network namespace of this process. It changes
// nothing.
func examine(x examination) (facts.Facts, error) {
	n := x.Node
	query := linux.Query{Slow: !x.Quick, Interfaces: doctor.Interfaces(n),
		SIDs: doctor.Destinations(n)}
	if n.PathSource != nil {
		query.VIPs = append(query.VIPs, n.PathSource.Addresses...)
	}
	if n.Host != nil {
		for _, s := range n.Host.Services {
			query.VIPs = append(query.VIPs, s.VIP)
		}
	}
	if n.Strays != nil {
		for _, v := range n.Strays.VRFs {
			query.VRFs = append(query.VRFs, linux.VRF(v))
		}
	}
	if n.Edge != nil && n.Edge.FlowCache.Entries > 0 {
		query.Learns, query.Learnt = learns(n.Edge)
	}
	found := linux.Facts(query)
	features, capabilities, err := agent.Lacking()
	found.Kernel.Missing, found.Kernel.Capabilities = features, capabilities
	if len(capabilities) > 0 || len(features) > 0 {
		return found, err
	}
	dir := cmp.Or(x.BPF, agent.PinDirectory(bpffsDir, n.Name))
	found.PinDir = dir
	var programErr, pinErr error
	found.Programs, programErr = datapath.Programs(filepath.Clean(dir))
	var askErr error
	if !x.Quick && n.CFLB != nil {
		found.Followers, askErr = askFollowers(n, x.NextHops)
	}
	if !x.Quick {
		found.Pins, pinErr = datapath.StalePins(filepath.Clean(dir))
	}
	return found, errors.Join(err, programErr, pinErr, askErr)
}

// learns are the interfaces by which SYN-ACKs can come to an edge with a flow cache, and a VIP of
// each family.
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

// machine describes this machine for support.
func machine(x examination) []part {
	parts := lists.Map(linux.Describe(), func(d linux.Description) part { return part(d) })
	dir := cmp.Or(x.BPF, agent.PinDirectory(bpffsDir, x.Node.Name))
	pins := jsonPart("pins.json")(datapath.DescribePins(filepath.Clean(dir)))
	return append(parts, pins, logPart())
}

// logLines is how much of the log a bundle takes.
const logLines = "5000"

// logPart is the agent's log, if systemd keeps one.
func logPart() part {
	command := exec.Command("journalctl", "--unit", "sextant", "--lines", logLines, "--no-pager",
		"--output", "short-iso-precise")
	text, err := command.Output()
	if err != nil {
		err = fmt.Errorf("journalctl: %w", err)
	}
	return part{"agent.log", text, err}
}
