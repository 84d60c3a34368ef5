// Package segment finds paths that segment routing can realise: the path of least latency with at
// most K SIDs, and sets of disjoint ones, after Aubry, Lebrun, Deville and Bonaventure, "Traffic
// duplication through segmentable disjoint paths", sections III.B to III.D.
//
// The paper takes a segment for any one path of a shortest-path DAG. Routers do not: a node SID
// sends packets over all equal-cost paths at once. So there are four models, and an answer is
// always of one:
//
//   - paper: the paper's. Its lists are loose where there are equal-cost paths.
//   - forced: node SIDs, each with exactly one shortest path from where it is used.
//
// - adjacency: those, and the SRv6 End.X: one SID for "go to u, by its only shortest path, then
// across this link". The default.
// - ecmp: node SIDs; a segment is its whole DAG, paths are disjoint with all their branches,
// latency is the worst branch's.
//
// A list is counted in SIDs, and its last one is a node SID of the destination; so a list that
// would end in an End.X costs one more.
//
// Of the paths that serve, the first is that of least latency, then fewest hops, then fewest SIDs.
// Among those that are still equal the choice follows from the numbers of nodes and edges alone: it
// does not depend on the number of goroutines, on what was asked before, or on whether rows were
// mended or computed anew.
//
// Disjoint paths are found one after the other (section III.D). Taking an edge out of use does not
// change the IGP; a link that fails does, and that is Engine.Apply.
package segment
