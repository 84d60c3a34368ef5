// Package edgecoloring assigns paths to flows of a switching fabric such that the largest number of
// flows on a link is as small as possible.
//
// Flows between switches with c parallel middle stages are edges of a bipartite multigraph, and a
// middle stage is a color: a vertex that has no color twice is a switch whose links carry one flow
// each. Koenig's theorem (1916) says that c colors are enough whenever no vertex has more than c
// edges, so every permutation of hosts of a fat tree fits without two flows on a link. A flow that
// arrives changes the colors of one alternating path at most, the shortest there is, or of two to a
// third color, where that is fewer; a flow that leaves changes none.
package edgecoloring
