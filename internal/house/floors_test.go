package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// A room is a package and the floor it is on. It imports rooms of lower floors, and of its own floor only those that
// are named beside it.
type room struct {
	floor  int
	path   string
	beside []string
}

// The floors, as ARCHITECTURE.md describes them.
const (
	vocabulary = iota // packet formats, hashes, tables, the configuration's schema
	decisions         // choices, as functions of plain values
	world             // the kernel, sockets, clocks
	daemons           // what runs for long, or runs others
	faces             // commands
)

var rooms = []room{
	{floor: vocabulary, path: "srv6"},
	{floor: vocabulary, path: "examples"},
	{floor: vocabulary, path: "flow", beside: []string{"srv6"}},
	{floor: vocabulary, path: "consistent", beside: []string{"srv6", "flow"}},
	{floor: vocabulary, path: "quiclb"},
	{floor: vocabulary, path: "rtnetlink"},
	{floor: vocabulary, path: "config", beside: []string{"srv6", "flow", "consistent", "quiclb"}},
	{floor: vocabulary, path: "topology"},
	{floor: vocabulary, path: "topology/format", beside: []string{"topology"}},
	{floor: vocabulary, path: "topology/generate", beside: []string{"topology"}},
	{floor: vocabulary, path: "topology/dataset", beside: []string{"topology", "topology/format"}},

	{floor: decisions, path: "pool"},
	{floor: decisions, path: "signing"},
	{floor: decisions, path: "membership"},
	{floor: decisions, path: "fib"},
	{floor: decisions, path: "shadow", beside: []string{"fib"}},
	{floor: decisions, path: "accept"},
	{floor: decisions, path: "continuity", beside: []string{"pool"}},
	{floor: decisions, path: "queueing"},
	{floor: decisions, path: "workload"},
	{floor: decisions, path: "hunting", beside: []string{"pool", "accept", "queueing", "workload"}},
	{floor: decisions, path: "topology/inspect"},
	{floor: decisions, path: "topology/draw"},
	{floor: decisions, path: "spf"},
	{floor: decisions, path: "segment", beside: []string{"spf"}},
	{floor: decisions, path: "segment/sids", beside: []string{"segment"}},
	{floor: decisions, path: "maxflow", beside: []string{"spf"}},
	{floor: decisions, path: "segment/proof", beside: []string{"spf", "segment", "maxflow"}},
	{floor: decisions, path: "diversity", beside: []string{"spf"}},
	{floor: decisions, path: "chart"},
	{floor: decisions, path: "doctor"},
	{floor: decisions, path: "impair"},
	{floor: decisions, path: "replicate"},
	{floor: decisions, path: "steer"},
	{floor: decisions, path: "protect", beside: []string{"segment", "segment/proof", "segment/sids", "steer"}},
	{floor: decisions, path: "forward", beside: []string{"pool", "accept", "replicate", "steer"}},
	{floor: decisions, path: "forward/packetgen"},
	{floor: decisions, path: "forward/packettest"},

	{floor: world, path: "kernel"},
	{floor: world, path: "kernel/kerneltest", beside: []string{"kernel"}},
	{floor: world, path: "hrtimer"},
	{floor: world, path: "wire"},
	{floor: world, path: "rib"},
	{floor: world, path: "probe"},
	{floor: world, path: "linkstate"},
	{floor: world, path: "linkstate/linkstatetest"},
	{floor: world, path: "fpm"},
	{floor: world, path: "routetable"},
	{floor: world, path: "archive"},
	{floor: world, path: "archive/archivetest", beside: []string{"archive"}},
	{floor: world, path: "datapath", beside: []string{"kernel"}},
	{floor: world, path: "health", beside: []string{"kernel"}},
	{floor: world, path: "load"},
	{floor: world, path: "emulate", beside: []string{"kernel", "hrtimer"}},
	{floor: world, path: "loadgen", beside: []string{"kernel", "hrtimer"}},

	{floor: daemons, path: "agent/api"},
	{floor: daemons, path: "agent", beside: []string{"agent/api"}},
	{floor: daemons, path: "lab"},
	{floor: daemons, path: "experiment", beside: []string{"lab", "agent/api"}},
	{floor: daemons, path: "experiment/experimenttest", beside: []string{"experiment"}},
	{floor: daemons, path: "experiment/disjoint", beside: []string{"experiment"}},
	{floor: daemons, path: "experiment/protection", beside: []string{"agent/api", "experiment", "lab"}},
	{floor: daemons, path: "experiment/srlb", beside: []string{"experiment", "lab", "agent/api"}},
	{floor: daemons, path: "experiment/soak", beside: []string{"experiment", "lab", "agent/api"}},
	{floor: daemons, path: "experiment/churn", beside: []string{"experiment", "lab", "agent/api"}},

	{floor: faces, path: "cmd/sextant"},
	{floor: faces, path: "internal/endtoend"},
	{floor: faces, path: "internal/packaging"},
	{floor: faces, path: "internal/house"},
}

func (r *repository) room(path string) (room, bool) {
	i := slices.IndexFunc(r.rooms, func(room room) bool { return room.path == path })
	if i < 0 {
		return room{}, false
	}
	return r.rooms[i], true
}

// isPure tells the packages that know no clock, socket, file, logger, goroutine or global randomness.
func (r *repository) isPure(path string) bool {
	room, ok := r.room(path)
	return ok && room.floor <= decisions
}

func TestImportsGoDown(t *testing.T) {
	check(t, "imports", importsGoDown,
		room{floor: vocabulary, path: "srv6"},
		room{floor: vocabulary, path: "flow", beside: []string{"srv6"}},
		room{floor: decisions, path: "pool"},
		room{floor: decisions, path: "accept"},
		room{floor: world, path: "gone"},
	)
}

// importsGoDown lets packages know only lower floors, and beside them what the table grants. Tests may look around on
// their own floor, but not up.
func importsGoDown(r *repository) []finding {
	module := modfile.ModulePath(r.texts["go.mod"])
	findings := roomsMatchPackages(r)
	for _, s := range r.sources {
		here, ok := r.room(s.dir())
		if !ok {
			continue // found above
		}
		for _, spec := range s.file.Imports {
			imported, inside := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			there, known := r.room(imported)
			if !inside || !known || there.path == here.path {
				continue
			}
			if what, mend := here.mayImport(there, s.isTest()); what != "" {
				findings = append(findings, finding{s.name, s.line(spec), what, mend})
			}
		}
	}
	return findings
}

func (here room) mayImport(there room, test bool) (what, mend string) {
	switch {
	case there.floor > here.floor:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d)", here.path, here.floor, there.path, there.floor),
			"imports go down: move what is shared to a lower floor, or pass it in as an argument"
	case there.floor < here.floor, test, slices.Contains(here.beside, there.path):
		return "", ""
	}
	return fmt.Sprintf("%s imports %s on its own floor %d", here.path, there.path, here.floor),
		"move what is shared to a lower floor, or let the floor above bring the two together"
}

// roomsMatchPackages wants each package in the table and each room of the table in ARCHITECTURE.md, as code, and no room
// without a package.
func roomsMatchPackages(r *repository) []finding {
	var findings []finding
	seen := map[string]bool{}
	for _, s := range r.sources {
		if _, ok := r.room(s.dir()); !ok && !seen[s.dir()] {
			findings = append(findings, finding{s.name, s.line(s.file), "package " + s.dir() + " is on no floor",
				"give it a room in internal/house/floors_test.go and in ARCHITECTURE.md"})
		}
		seen[s.dir()] = true
	}
	if !r.has("ARCHITECTURE.md") {
		findings = append(findings, finding{"ARCHITECTURE.md", 1, "there is no ARCHITECTURE.md", "write it"})
	}
	for _, room := range r.rooms {
		if !seen[room.path] {
			findings = append(findings, finding{"internal/house/floors_test.go", 1,
				"the table has a room " + room.path + ", but there is no such package", "remove the room"})
		}
		if r.has("ARCHITECTURE.md") && !strings.Contains(string(r.texts["ARCHITECTURE.md"]), "`"+room.path) {
			findings = append(findings, finding{"ARCHITECTURE.md", 1, "it does not mention `" + room.path + "`",
				"say what lives there, and on which floor"})
		}
	}
	return findings
}
