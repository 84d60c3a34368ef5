// Package maxflow computes the number of disjoint paths in a network, whether or not segment lists
// can express them: the upper bound for a set of segmentable paths. By Menger's theorem the number
// equals the size of a smallest cut, which the package names; and the cheapest set of k disjoint
// paths, found by successive shortest paths, bounds their total delay from below (Suurballe 1974,
// Suurballe and Tarjan 1984; Bhandari 1999).
package maxflow
