// Package diversity counts the equal-cost paths between nodes, and the next hops that routers have
// for them, without enumerating paths: as in section 2.2 of Detal, Paasch, van der Linden,
// Mérindol, Avoine and Bonaventure, "Revisiting flow-based load balancing: stateless path selection
// in data center networks" (Computer Networks 57, 2013).
package diversity
