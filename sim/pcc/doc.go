// Package pcc simulates per-connection consistency: which connections survive when servers and
// edges are added and removed.
//
// It drives the real generations of package pool and follows packets along their chains by a small
// model of what edge and hosts do with them (docs/reference/dataplane.md). Churn runs millions of
// flows through a pool that changes all the time and counts those that are cut. The package's tests
// explore each interleaving of a small world with the same model, and hold docs/explanation/pcc.md
// to what they find.
package pcc
