package doctor

import (
	"fmt"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
)

func kernelFeatures(_ *config.Node, f *facts.Facts, _ string) []Finding {
	var list []Finding
	for _, what := range f.Kernel.Missing {
		list = append(list, Finding{"kernel_feature", Broken, "kernel " + f.Kernel.Release,
			"the kernel lacks " + what,
			"the programs call it and are refused without it",
			"use Linux 6.1 or newer with CONFIG_DEBUG_INFO_BTF=y, as Debian 12 has"})
	}
	if len(f.Kernel.Capabilities) > 0 {
		list = append(list, Finding{"privilege", Broken, "this process",
			"it lacks " + strings.Join(f.Kernel.Capabilities, ", "),
			"loading and attaching programs, and part of these checks, take them",
			"run as root: sudo sextant doctor"})
	}
	return list
}

func fileSystems(n *config.Node, f *facts.Facts, _ string) []Finding {
	var list []Finding
	if !f.Kernel.BPFFS {
		list = append(list, Finding{"bpffs", Broken, "/sys/fs/bpf",
			"no bpf file system is mounted there",
			"programs and tables are pinned on it, so that packets are forwarded when the agent " +
				"ends",
			"mount -t bpf bpf /sys/fs/bpf (the agent does that too if it may)"})
	}
	if n.Host != nil && !f.Kernel.Cgroup2 {
		list = append(list, Finding{"cgroup2", Broken, "cgroup2",
			"no cgroup2 file system is mounted",
			"open connections are counted by a program on a cgroup",
			"mount -t cgroup2 none /sys/fs/cgroup"})
	}
	return list
}

// slowClocks are clock sources whose reading takes a trip to a device, or which only tick.
var slowClocks = []string{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"}

func clockSource(_ *config.Node, f *facts.Facts, _ string) []Finding {
	for _, slow := range slowClocks {
		if f.Kernel.ClockSource == slow {
			return []Finding{{"clock", Risk, "clock source " + slow,
				"the kernel reads the time from " + slow,
				"rate limits and lifetimes ask for the time per packet; this source takes up to " +
					"microseconds, or moves in ticks",
				"choose tsc, arch_sys_counter or kvm-clock: echo tsc > " +
					"/sys/devices/system/clocksource/clocksource0/current_clocksource"}}
		}
	}
	return nil
}

func twoAgents(n *config.Node, f *facts.Facts, _ string) []Finding {
	var same []string
	for _, a := range f.Agents {
		if a.Node == n.Name || a.Node == "" {
			same = append(same, fmt.Sprint(a.PID))
		}
	}
	if len(same) < 2 {
		return nil
	}
	return []Finding{{"two_agents", Broken, "processes " + strings.Join(same, ", "),
		"more than one agent runs for node " + n.Name,
		"each replaces the programs and tables of the other", "stop all but one"}}
}

func stalePins(_ *config.Node, f *facts.Facts, _ string) []Finding {
	var list []Finding
	for _, p := range f.Pins {
		list = append(list, Finding{"stale_pins", Risk, p.Path, p.What,
			"it is of another version of Sextant, and goes on running until an agent of this " +
				"version takes over",
			"restart the agent: packets are forwarded on meanwhile; if it refuses, sextant " +
				"unload -f FILE first"})
	}
	return list
}
