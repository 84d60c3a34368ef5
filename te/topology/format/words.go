package format

import (
	"strconv"
	"strings"
	"unicode"

	"sextant/te/topology"
)

// word makes one word of a name, for formats that separate by blanks.
func word(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name)
}

// wordNames are the names of the nodes as words, different from one another.
func wordNames(g *topology.Graph) []string { return distinct(g, word) }

// distinct changes the names of the nodes, and numbers those that became the same.
func distinct(g *topology.Graph, change func(string) string) []string {
	names := make([]string, g.Nodes())
	taken := map[string]bool{}
	for v := range names { // those that need no change keep theirs
		if name := g.Node(topology.Node(v)).Name; change(name) == name {
			names[v] = name
			taken[name] = true
		}
	}
	next := map[string]int{} // the number that was tried last behind a name
	for v := range names {
		if names[v] != "" {
			continue
		}
		base := change(g.Node(topology.Node(v)).Name)
		name := base
		for name == "" || taken[name] {
			next[base]++
			name = base + "_" + strconv.Itoa(next[base]+1)
		}
		names[v] = name
		taken[name] = true
	}
	return names
}
