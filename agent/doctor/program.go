package doctor

import (
	"fmt"
	"slices"

	"sextant/config"
	"sextant/linux/facts"
)

// programs compares what is attached to interfaces with what the agent has attached, and pinned.
func programs(n *config.Node, f *facts.Facts, _ string) []Finding {
	if f.Programs == nil {
		return nil
	}
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		ours := slices.ContainsFunc(attached(f),
			func(p facts.Program) bool { return p.Interface == at.Name && p.ID == i.XDPProgram })
		switch {
		case at.Plain || ours:
			return nil
		case i.XDP != "" && slices.Contains(programNames, i.XDPName):
			return []Finding{unknownProgram(f, at, i)}
		case i.XDP != "":
			return []Finding{{"program_foreign", Broken, at.Name,
				fmt.Sprintf("the XDP program %d runs on it, which is not of this node",
					i.XDPProgram),
				"an interface has one XDP program: the " + at.Role +
					" sees no packet here, and its agent can't attach anything",
				fmt.Sprintf("see whose it is: bpftool prog show id %d; take it off: ip link set "+
					"dev %s %s off; an agent that runs attaches its own within a second",
					i.XDPProgram, at.Name, attachment(i))}}
		case f.Running != nil || len(f.Programs) > 0:
			return []Finding{{"program_missing", Broken, at.Name,
				"no XDP program runs on it, while others of this node do, or its agent",
				"the interface was made anew, or the program was taken off: the " + at.Role +
					" sees no packet here",
				"an agent that runs attaches it within a second, or says why not: sextant " +
					"status; if none runs, start it"}}
		}
		return nil
	})
}

// programNames are the names of Sextant's XDP programs.
var programNames = []string{"edge", "host", "headend", "merge", "stray"}

// unknownProgram is a program that may be of an agent whose pins are not where they were looked
// for. To take it off would stop that agent's traffic.
func unknownProgram(f *facts.Facts, at config.Face, i facts.Interface) Finding {
	cause := "its pins are in another directory, or hidden by another bpf file system, or it is " +
		"of " +
		"another node"
	for _, a := range f.Agents {
		cause += fmt.Sprintf("; an agent runs here as process %d", a.PID)
	}
	return Finding{"program_unknown", Risk, at.Name,
		fmt.Sprintf("the XDP program %d (%s) runs on it, which may be of an agent whose pins are "+
			"not seen here", i.XDPProgram, i.XDPName), cause,
		"name the agent's socket (--socket PATH), or where it pins (--bpf DIRECTORY), and run " +
			"the " +
			"doctor again; leave the program alone"}
}

// attached are the programs that pins or the agent itself know: what a running agent has attached
// is never foreign.
func attached(f *facts.Facts) []facts.Program {
	if f.Running == nil {
		return f.Programs
	}
	return slices.Concat(f.Programs, f.Running.Programs)
}

// hiddenPins finds an agent whose pins are not to be seen from here: "ip netns exec" and containers
// mount a bpf file system of their own over the agent's.
func hiddenPins(_ *config.Node, f *facts.Facts, _ string) []Finding {
	runs := func(p facts.Program) bool { return f.Interfaces[p.Interface].XDPProgram != 0 }
	if f.Running == nil || f.Programs == nil || len(f.Programs) > 0 ||
		!slices.ContainsFunc(f.Running.Programs, runs) { // of interfaces that are gone, none is
		return nil
	}
	return []Finding{{"pins_hidden", Notable, f.PinDir,
		"the agent has programs attached, but their pins are not in " + f.PinDir,
		"the agent pins in " + f.Running.PinDir + " of its own mount namespace; ip netns exec " +
			"hides that behind a bpf file system of its own",
		"run it with the agent's mounts: nsenter --net=/run/netns/NAME sextant doctor; or name " +
			"the directory with --bpf"}}
}

// attachment is what ip calls the way in which a program is attached.
func attachment(i facts.Interface) string {
	if i.XDP == "generic" {
		return "xdpgeneric"
	}
	return "xdpdrv"
}
