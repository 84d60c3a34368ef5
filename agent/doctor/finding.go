package doctor

import (
	"cmp"
	"slices"

	"sextant/config"
	"sextant/linux/facts"
)

// Severity says what a finding does to packets.
type Severity string

// The severities, the worst first.
const (
	Broken  Severity = "broken"  // packets are lost, or connections fail
	Risk    Severity = "risk"    // some are, or may be, or it is slower than it could be
	Notable Severity = "notable" // nothing is lost; worth knowing
)

// Finding is one thing that is wrong, why, and what mends it.
type Finding struct {
	Code     string   `json:"code"` // stable, for programs
	Severity Severity `json:"severity"`
	On       string   `json:"on"`    // what it is about: an interface, a service, a file, the node
	What     string   `json:"what"`  // is wrong
	Cause    string   `json:"cause"` // why that matters, or what causes it
	Mend     string   `json:"mend"`  // what to do; a command where one is enough
}

// Sick reports whether a finding needs mending.
func (f Finding) Sick() bool { return f.Severity != Notable }

// diagnosis finds faults of one kind. Version is that of the command which asks.
type diagnosis func(n *config.Node, f *facts.Facts, version string) []Finding

// diagnoses are all kinds, in the order in which they should be mended: what comes first can cause
// what follows.
var diagnoses = []diagnosis{
	kernelFeatures, fileSystems, clockSource, interfaces, hiddenPins, programs, nativeXDP, vethPeer,
	uplinks, checksumOffload, genericGRO, mtu,
	headendRoom, pathMTU, forwarding, segmentRouting, reversePath, vips, listeners, vrfDevices,
	vrfSIDs, vrfAddresses, strayPassages,
	sidRoutes, cacheAnswers, learners, unguarded, mixedSides, twoAgents, stalePins, agentState,
	selectorRadix, selectorFollowers, pathAddresses,
	queuesUnknown, telemetryRoom, telemetryLeftOut, telemetrySilent,
	silentHost, vrfTraffic, cacheTraffic, learningTraffic,
}

// Diagnose lists what is wrong with a node, the worst first. Version is that of Sextant.
func Diagnose(n *config.Node, f facts.Facts, version string) []Finding {
	findings := []Finding{}
	for _, d := range diagnoses {
		findings = append(findings, d(n, &f, version)...)
	}
	findings = once(findings)
	rank := map[Severity]int{Broken: 0, Risk: 1, Notable: 2}
	slices.SortStableFunc(findings,
		func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return findings
}

// once leaves out what was said before: what several VRFs share.
func once(list []Finding) []Finding {
	seen := map[Finding]bool{}
	return slices.DeleteFunc(list, func(f Finding) bool {
		before := seen[f]
		seen[f] = true
		return before
	})
}
