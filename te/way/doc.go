// Package way computes the paths from an edge to its servers: what is wanted of them, as the SIDs
// that packets visit before those of their chain.
//
//	Intent, Network, node names --Compute--> Answer: one path, or two that share no link
//
// A path ends where the server's own SID takes over, so it has none for the node that the server is
// behind, and none at all where routing's own way is what is wanted.
package way
