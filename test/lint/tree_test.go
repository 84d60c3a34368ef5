package lint

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// A folder is a package of the tree.
type folder struct {
	path string
	pure bool // knows no clock, socket, file, logger, goroutine or global randomness
}

// tree lists all packages. A package imports packages further down only; its tests may look at all
// of their own first folder, too. What lies in a folder of pureFolders is pure.
var tree = []folder{
	{path: "test/e2e"},
	{path: "test/deb"},
	{path: "test/lint"},

	{path: "cmd/sextant"},
	{path: "packaging/release"},

	{path: "experiment/srlb"},
	{path: "experiment/churn"},
	{path: "experiment/protection"},
	{path: "experiment/disjoint"},
	{path: "experiment/fabric"},
	{path: "experiment/together"},
	{path: "experiment/cflb"},
	{path: "experiment/soak"},
	{path: "experiment/experimenttest"},
	{path: "experiment"},
	{path: "experiment/chart", pure: true},
	{path: "experiment/tablefile"},

	{path: "controller/kubernetes/e2e"},
	{path: "controller/kubernetes/kubetest"},
	{path: "controller/kubernetes/cmd/sextant-kubernetes"},
	{path: "controller/kubernetes/controller"},
	{path: "controller/kubernetes/node"},
	{path: "controller/kubernetes/edges"},
	{path: "controller/kubernetes/plan", pure: true},
	{path: "controller/kubernetes/address", pure: true},
	{path: "controller/kubernetes/v1alpha1", pure: true},
	{path: "controller"},
	{path: "controller/schedulerpb"},
	{path: "controller/listener"},
	{path: "controller/collector"},
	{path: "controller/ipfix", pure: true},
	{path: "controller/tsharktest"},

	{path: "agent"},
	{path: "agent/edge"},
	{path: "agent/host"},
	{path: "agent/headend"},
	{path: "agent/merge"},
	{path: "agent/strays"},
	{path: "agent/cflb"},
	{path: "agent/pathsource"},
	{path: "agent/subflows"},
	{path: "agent/flowlets"},
	{path: "agent/telemetry"},
	{path: "agent/role/roletest"},
	{path: "agent/role"},
	{path: "agent/exporter"},
	{path: "agent/explain"},
	{path: "agent/metrics"},
	{path: "agent/state"},
	{path: "agent/doctor", pure: true},
	{path: "agent/health"},
	{path: "agent/serverload"},
	{path: "agent/network"},
	{path: "agent/pathprobe"},
	{path: "agent/pathtrace"},
	{path: "agent/archive/archivetest"},
	{path: "agent/archive"},
	{path: "agent/southbound/southboundtest"},
	{path: "agent/southbound"},
	{path: "agent/southbound/southboundpb"},
	{path: "agent/httpserver"},
	{path: "agent/access"},
	{path: "agent/tracing"},
	{path: "agent/monitoring"},
	{path: "agent/api"},
	{path: "agent/peer"},
	{path: "agent/signing", pure: true},
	{path: "agent/web"},

	{path: "lab"},
	{path: "lab/linkemu"},
	{path: "lab/netem", pure: true},
	{path: "lab/webserver"},
	{path: "lab/loadgen"},

	{path: "sim/packet/scenario", pure: true},
	{path: "sim/packet", pure: true},
	{path: "sim/hunting", pure: true},
	{path: "sim/pcc", pure: true},
	{path: "sim/queueing", pure: true},
	{path: "sim/workload", pure: true},

	{path: "datapath"},
	{path: "datapath/model", pure: true},
	{path: "datapath/packetgen", pure: true},
	{path: "datapath/packettest", pure: true},

	{path: "routing/bgp"},
	{path: "routing/fpm"},
	{path: "routing/kernelfib"},
	{path: "routing/shadowvrf", pure: true},
	{path: "routing/equalcost", pure: true},
	{path: "routing/rib", pure: true},
	{path: "routing/linkstate/linkstatetest"},
	{path: "routing/linkstate"},

	{path: "lb/pool", pure: true},
	{path: "lb/consistenthash", pure: true},
	{path: "lb/acceptance", pure: true},
	{path: "lb/discovery", pure: true},

	{path: "te/way", pure: true},
	{path: "te/protection", pure: true},
	{path: "te/segment/proof", pure: true},
	{path: "te/segment/sidlist", pure: true},
	{path: "te/segment", pure: true},
	{path: "te/srpolicy", pure: true},
	{path: "te/frer", pure: true},
	{path: "te/elephant", pure: true},
	{path: "te/reroute", pure: true},
	{path: "te/diversity", pure: true},
	{path: "te/edgecoloring", pure: true},
	{path: "te/maxflow", pure: true},
	{path: "te/spf", pure: true},
	{path: "te/topology/draw", pure: true},
	{path: "te/topology/inspect", pure: true},
	{path: "te/topology/dataset", pure: true},
	{path: "te/topology/generate", pure: true},
	{path: "te/topology/format", pure: true},
	{path: "te/topology", pure: true},

	{path: "config/convert", pure: true},
	{path: "config", pure: true},

	{path: "linux/linuxtest"},
	{path: "linux"},
	{path: "linux/facts", pure: true},
	{path: "linux/rtnetlink", pure: true},
	{path: "linux/hrtimer"},

	{path: "packet/cflb", pure: true},
	{path: "packet/telemetry", pure: true},
	{path: "packet/quiclb", pure: true},
	{path: "packet/flow", pure: true},
	{path: "packet/srv6", pure: true},
	{path: "packet/syntax", pure: true},

	{path: "examples", pure: true},
}

// pureFolders are those in which each package is pure.
var pureFolders = []string{"packet", "te", "lb", "sim"}

// maxFolders is how many folders the root has at most.
const maxFolders = 20

func firstOf(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func (r *repository) place(path string) int {
	return slices.IndexFunc(r.tree, func(f folder) bool { return f.path == path })
}

func (r *repository) isPure(path string) bool {
	i := r.place(path)
	return i >= 0 && r.tree[i].pure
}

func TestImportsGoDown(t *testing.T) {
	check(t, "imports", importsGoDown,
		folder{path: "agent"},
		folder{path: "sim/hunting"},
		folder{path: "gone"},
		folder{path: "lb/pool", pure: true},
		folder{path: "packet/flow", pure: true},
		folder{path: "packet/srv6", pure: true},
	)
}

// importsGoDown lets packages know only those further down in the tree.
func importsGoDown(r *repository) []finding {
	module := modfile.ModulePath(r.texts["go.mod"])
	findings := treeMatchesPackages(r)
	for _, s := range r.sources {
		here := r.place(s.dir())
		if here < 0 {
			continue // found above
		}
		for _, spec := range s.file.Imports {
			imported, inside := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			there := r.place(imported)
			if !inside || there < 0 || there >= here ||
				s.isTest() && firstOf(imported) == firstOf(s.dir()) {
				continue
			}
			findings = append(findings, finding{s.name, s.line(spec),
				s.dir() + " imports " + imported + ", which is above it",
				"imports go down: move what is shared further down, or pass it in as an argument"})
		}
	}
	return findings
}

const treeFile = "test/lint/tree_test.go"

// treeMatchesPackages wants each package in the tree, each folder of the tree in ARCHITECTURE.md,
// as code, pure packages where all are, no folder without a package, and few at the root.
func treeMatchesPackages(r *repository) []finding {
	var findings []finding
	seen, roots := map[string]bool{}, map[string]bool{}
	for _, s := range r.sources {
		if r.place(s.dir()) < 0 && !seen[s.dir()] {
			findings = append(findings, finding{s.name, s.line(s.file),
				"package " + s.dir() + " is not in the tree",
				"give it a place in " + treeFile + " and in ARCHITECTURE.md"})
		}
		seen[s.dir()] = true
	}
	for _, name := range r.files {
		if strings.Contains(name, "/") && !strings.HasPrefix(name, ".") {
			roots[firstOf(name)] = true
		}
	}
	if len(roots) > maxFolders {
		findings = append(findings, finding{treeFile, 1, "the root has too many folders",
			"put the new one into the folder of its subject"})
	}
	if !r.has("ARCHITECTURE.md") {
		findings = append(findings, finding{"ARCHITECTURE.md", 1, "there is no ARCHITECTURE.md",
			"write it"})
	}
	for _, f := range r.tree {
		if !seen[f.path] {
			findings = append(findings, finding{treeFile, 1,
				"the tree has a folder " + f.path + ", but there is no such package",
				"remove the folder"})
		}
		if !f.pure && slices.Contains(pureFolders, firstOf(f.path)) {
			findings = append(findings, finding{treeFile, 1, f.path + " is not pure",
				"pass clocks, sockets and randomness in as arguments: what is in " +
					firstOf(f.path) +
					" decides, and does nothing"})
		}
		if r.has("ARCHITECTURE.md") && !strings.Contains(string(r.texts["ARCHITECTURE.md"]),
			"`"+f.path) {
			findings = append(findings, finding{"ARCHITECTURE.md", 1,
				"it does not mention `" + f.path + "`",
				"say what lives there"})
		}
	}
	return findings
}
