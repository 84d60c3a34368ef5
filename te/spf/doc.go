// Package spf computes shortest paths as rows: all that is known of the shortest paths from one
// node, or to one node. Rows are computed when they are asked for and mended, not computed anew,
// when costs change.
//
// Equal-cost paths are never listed. A row says which edges lie on a shortest path (its DAG), and
// where there is exactly one (its forced tree). That is enough for all that segment routing asks.
//
// Nothing depends on the order in which rows are asked for or mended, or on how many goroutines do:
// a distance is a number, an edge is on the DAG or not, and where one edge of several must be
// named, it is the one with the lowest number.
package spf
