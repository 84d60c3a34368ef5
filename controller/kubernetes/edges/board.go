package edges

import (
	"maps"
	"slices"
	"sync"

	"sextant/controller/kubernetes/plan"
)

// A Board has what is planned, for all edges to read.
type Board struct {
	// Prefix begins the names of this cluster's services at the edges; others are left alone.
	prefix string
	// told gets the owners about which an edge has said something new.
	told func(owner string)

	mu      sync.Mutex
	results map[string]plan.Result // by name
	owners  map[string][]string    // names of an owner
	ownerOf map[string]string
	keepers map[string]*Keeper
	whole   bool // all that there is has been posted once
}

// NewBoard makes a board for services whose names begin with a prefix and a dot. It calls told,
// which must not wait, with owners for whom an edge has said something new.
func NewBoard(prefix string, told func(owner string)) *Board {
	return &Board{prefix: prefix + ".", told: told, results: map[string]plan.Result{},
		owners: map[string][]string{}, ownerOf: map[string]string{}, keepers: map[string]*Keeper{}}
}

// Post replaces all that is planned for an owner; nothing removes it.
func (b *Board) Post(owner string, results []plan.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	dirty := map[string]bool{}
	for _, name := range b.owners[owner] {
		dirty[name] = true
		delete(b.results, name)
		delete(b.ownerOf, name)
	}
	delete(b.owners, owner)
	for _, r := range results {
		dirty[r.Name] = true
		b.results[r.Name] = r
		b.ownerOf[r.Name] = owner
		b.owners[owner] = append(b.owners[owner], r.Name)
	}
	for _, k := range b.keepers {
		k.mark(slices.Collect(maps.Keys(dirty)))
	}
}

// Whole lets edges begin: until it is called nothing is sent, since what is not posted yet would be
// removed there.
func (b *Board) Whole() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = true
	for _, k := range b.keepers {
		k.mark(nil)
	}
}

// Result is what is planned under a name.
func (b *Board) result(name string) (r plan.Result, owner string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok = b.results[name]
	return r, b.ownerOf[name], ok
}

func (b *Board) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.results))
}

func (b *Board) isWhole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole
}

// State is what an edge has of an owner.
type State struct {
	Edge string
	// Serves says that the edge has all services of the owner, maybe as they were.
	Serves bool
	// Current says that it has them as they are planned.
	Current bool
	Trouble string // what the edge says against one of them; or why it does not answer
}

// States are those of all edges, in the order of their names.
func (b *Board) States(owner string) []State {
	b.mu.Lock()
	names, keepers := slices.Clone(b.owners[owner]), maps.Clone(b.keepers)
	b.mu.Unlock()
	var list []State
	for _, edge := range slices.Sorted(maps.Keys(keepers)) {
		s := keepers[edge].state(names)
		s.Edge = edge
		list = append(list, s)
	}
	return list
}

// Set makes, replaces or, with a nil agent, removes the keeper of an edge.
func (b *Board) Set(edge string, agent Agent, zone string, report func(Report)) {
	b.mu.Lock()
	old := b.keepers[edge]
	delete(b.keepers, edge)
	if agent != nil {
		b.keepers[edge] = newKeeper(b, agent, zone, report)
	}
	b.mu.Unlock()
	if old != nil {
		old.stop()
	}
}

// Stop ends all keepers. What edges have stays there.
func (b *Board) Stop() {
	b.mu.Lock()
	all := maps.Clone(b.keepers)
	clear(b.keepers)
	b.mu.Unlock()
	for _, k := range all {
		k.stop()
	}
}
