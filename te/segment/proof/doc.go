// Package proof bounds the quality of a set of segmentable disjoint paths: whether more paths
// exist, whether a cheaper pair exists, and if not, why.
//
// The number of disjoint paths is bounded from above by a maximum flow over the edges that a model
// can use at all, whose certificate is a cut, and more tightly by prices on what paths must not
// share: if every segment list costs at least p, and all there is costs P, there are at most P/p
// disjoint ones. That is the dual of the linear program over the layered graph of Aubry, Lebrun,
// Deville and Bonaventure ("Traffic duplication through segmentable disjoint paths", Algorithm 2),
// found by multiplicative weights (Garg and Könemann 1998) and checked in integers. The bounds are
// met from below by the paths of the flow, by restarts with random costs, and at last by a search
// that splits on what two paths share, within a budget.
//
// The total delay of a pair is bounded by Suurballe's pair, then by Lagrange multipliers, then by
// the same search.
package proof
