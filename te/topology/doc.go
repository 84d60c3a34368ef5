// Package topology holds networks as graphs: routers as nodes, links as pairs of directed edges
// with an IGP weight, a delay, a capacity and shared-risk groups. Edges are keyed by number,
// because parallel links are common in real networks.
//
// A Graph never changes; a View is a Graph with some edges switched off, cheap to derive and to
// compare.
package topology
