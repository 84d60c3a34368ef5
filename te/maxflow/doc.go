// Package maxflow answers how many disjoint paths a network holds at all, whatever a segment list
// can express: the bound that a set of segmentable paths is measured against. By Menger's theorem
// the number equals the size of a smallest cut, which the package names; and the cheapest set of k
// disjoint paths, found by successive shortest paths, bounds their total delay from below
// (Suurballe 1974, Suurballe and Tarjan 1984; Bhandari 1999).
package maxflow
