// Package soak runs an edge and hosts under the flows of a day within minutes: real agents and
// programs in a lab, millions of generated flows on the programs' own tables, real connections
// beside them, while pools change and agents restart. After each part all packets must be accounted
// for, and at the end nothing may have grown or been left behind.
package soak
