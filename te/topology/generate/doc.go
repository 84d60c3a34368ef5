// Package generate makes topologies: those of data centers (fat tree, VL2, BCube, spine and leaf),
// grids, and random networks that resemble Internet providers (Gabriel graphs of cities, Waxman
// graphs). The same arguments give the same graph.
//
// Delays are microseconds. The places of nodes are for drawing: a plane, in km for the random
// networks.
package generate
