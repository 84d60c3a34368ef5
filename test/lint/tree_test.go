package lint

import (
	"os"
	"regexp"
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

// tree lists all packages, as the table of ARCHITECTURE.md has them. A package imports packages
// further down only; its tests may look at all of their own first folder, too.
var tree = readTree("../../" + treeFile)

// treeFile has the tree: rows that begin with the path of a package in backquotes.
const treeFile = "ARCHITECTURE.md"

// purePackages are those that know no clock, socket, file, logger, goroutine or global randomness.
// Of a first folder alone, all that lies in it is pure.
var purePackages = []string{
	"packet", "te", "lb", "sim",
	"experiment/chart", "controller/kubernetes/plan", "controller/kubernetes/address",
	"controller/kubernetes/v1alpha1", "controller/ipfix", "agent/doctor", "agent/signing",
	"lab/netem", "datapath/model", "datapath/packetgen", "datapath/packettest",
	"routing/shadowvrf", "routing/equalcost", "routing/rib", "config/convert", "config",
	"linux/facts", "linux/rtnetlink", "examples",
}

func readTree(name string) (list []folder) {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	for _, match := range row.FindAllSubmatch(text, -1) {
		path := string(match[1])
		list = append(list, folder{path, slices.Contains(purePackages, path) ||
			slices.Contains(purePackages, firstOf(path))})
	}
	return list
}

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

// Each pure package is in the tree, and pure there; so is what lies in a pure first folder.
func TestPurePackages(t *testing.T) {
	for _, pure := range purePackages {
		found := false
		for _, f := range tree {
			if f.path == pure || strings.HasPrefix(f.path, pure+"/") {
				found = true
				if !f.pure {
					t.Errorf("%s is not pure", f.path)
				}
			}
		}
		if !found {
			t.Errorf("the tree has no %s", pure)
		}
	}
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

// treeMatchesPackages wants each package in the tree, no folder of the tree without a package, and
// few folders at the root.
func treeMatchesPackages(r *repository) []finding {
	var findings []finding
	seen, roots := map[string]bool{}, map[string]bool{}
	for _, s := range r.sources {
		if r.place(s.dir()) < 0 && !seen[s.dir()] {
			findings = append(findings, finding{s.name, s.line(s.file),
				"package " + s.dir() + " is not in the tree",
				"give it a row in the table of " + treeFile + ", above what it imports: go test " +
					"./test/lint -run TestTreeRows -args -update"})
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
	for _, f := range r.tree {
		if !seen[f.path] {
			findings = append(findings, finding{treeFile, 1,
				"the tree has a folder " + f.path + ", but there is no such package",
				"take its row out"})
		}
	}
	return findings
}
