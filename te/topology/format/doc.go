// Package format reads and writes topologies in the formats in which networks are published:
// REPETITA, Rocketfuel, Topology Zoo GraphML, SNDlib (native and XML), networkx node-link JSON,
// edge lists, and the topology of a lab file.
//
// Readers keep parallel links, number nodes and edges in the order of the file, and refuse what is
// not a whole number in range. Their errors read FILE:LINE: what is wrong; what would mend it.
// docs/howto/topology.md describes the formats.
package format
