package segment

import (
	"fmt"
	"slices"
	"strings"

	"sextant/te/spf"
)

// Model says what a segment is. The package comment compares them.
type Model string

// The models.
const (
	Paper           Model = "paper"
	Forced          Model = "forced"
	ForcedAdjacency Model = "adjacency"
	ECMP            Model = "ecmp"
)

// Models lists the models, the paper's first.
func Models() []Model { return []Model{Paper, Forced, ForcedAdjacency, ECMP} }

// ParseModel reads the name of a model.
func ParseModel(text string) (Model, error) {
	return parse(text, "model", Models())
}

// layer is what a segment of the model costs.
func (m Model) layer() spf.LayerKind {
	switch m {
	case Paper:
		return spf.Least
	case ECMP:
		return spf.Worst
	}
	return spf.Forced
}

// Disjointness says what two paths must not share.
type Disjointness string

// The kinds of disjointness, from weak to strong.
const (
	EdgeDisjoint Disjointness = "edge" // a link in one direction: the paper's "link-disjoint"
	// a link in either direction: what fails together. The default
	LinkDisjoint Disjointness = "link"
	// a node between the ends, or a link from the one end to the other
	NodeDisjoint Disjointness = "node"
	SRLGDisjoint Disjointness = "srlg" // a link in either direction, or a shared-risk group of any
)

// ParseDisjointness reads the name of a kind of disjointness.
func ParseDisjointness(text string) (Disjointness, error) {
	return parse(text, "disjointness", disjointnesses)
}

var disjointnesses = []Disjointness{EdgeDisjoint, LinkDisjoint, NodeDisjoint, SRLGDisjoint}

func parse[T ~string](text, what string, known []T) (T, error) {
	if slices.Contains(known, T(text)) {
		return T(text), nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return "", fmt.Errorf("there is no %s %q; choose one of %s", what, text,
		strings.Join(names, ", "))
}
