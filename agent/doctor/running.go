package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/linux/facts"
	"sextant/packet/lists"
)

func agentState(_ *config.Node, f *facts.Facts, version string) []Finding {
	r := f.Running
	if r == nil {
		return []Finding{{"agent_down", Notable, "agent", "no agent answers",
			"what is loaded forwards on, but nothing adapts it", "start it: sextant agent -f FILE"}}
	}
	var list []Finding
	if version != "" && r.Version != version {
		list = append(list, Finding{"agent_version", Risk, "agent",
			"it is version " + r.Version + ", this command is " + version,
			"one was upgraded and not restarted",
			"restart the agent: packets are forwarded on meanwhile"})
	}
	for _, w := range r.Warnings {
		list = append(list, Finding{"agent_warning", Risk, "agent", w, "the agent warns of it",
			"see: sextant status"})
	}
	for _, b := range r.Failing {
		list = append(list, Finding{"backend_failing", Broken, b.Service + " " + b.Backend,
			"it fails its health check", b.Error,
			"see that server and host run: sextant doctor there"})
	}
	for _, key := range slices.Sorted(maps.Keys(r.Drops)) {
		role, reason, _ := strings.Cut(key, " ")
		if cause, remedy := model.Fault(reason); cause != "" && r.Drops[key] > 0 {
			what := fmt.Sprintf("%d packets were dropped", r.Drops[key])
			list = append(list, Finding{"drops", Risk, role + " " + reason, what, cause, remedy})
		}
	}
	return list
}

// silentHost is what a host sees of a locator that nobody routes to it.
func silentHost(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Host == nil || f.Running == nil || f.Running.SIDPackets > 0 {
		return nil
	}
	sids := lists.Map(n.Host.SIDs, func(s config.SID) string { return s.Prefix.String() })
	return []Finding{{"locator_silent", Notable, strings.Join(sids, ", "),
		"no packet has come to a SID of this host yet",
		"no edge offers anything to it, or its router has no route for its locator to this host",
		"see on an edge: ip -6 route get SID, and sextant backend list"}}
}
