package doctor

import (
	"cmp"
	"fmt"
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
	findings = few(once(findings))
	rank := map[Severity]int{Broken: 0, Risk: 1, Notable: 2}
	slices.SortStableFunc(findings,
		func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return findings
}

// mostAlike is how many findings of one kind are listed one by one.
const mostAlike = 20

// few lists the first findings of each kind, and says of the others how many there are: a node may
// have ten thousand services behind one link that is down.
func few(list []Finding) (kept []Finding) {
	all, seen := map[string]int{}, map[string]int{}
	for _, f := range list {
		all[f.Code]++
	}
	for _, f := range list {
		seen[f.Code]++
		if rest := all[f.Code] - mostAlike + 1; rest > 1 && seen[f.Code] == mostAlike {
			f.On, f.What = "others", fmt.Sprintf("%d more findings like the last one", rest)
			kept = append(kept, f)
		} else if rest <= 1 || seen[f.Code] < mostAlike {
			kept = append(kept, f)
		}
	}
	return kept
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
