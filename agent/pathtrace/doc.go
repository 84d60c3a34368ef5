// Package pathtrace sends packets along each path between two hosts of a network with controllable
// load balancing, and finds out what they meet: which routers, whether these follow selectors, and
// which link loses packets.
//
// A probe is a SYN of TCP whose selector asks for a path. The routers of the path are those that
// answer with Time Exceeded as the hop limit grows; a selector is read by hop limit, so that each
// probe is encoded for its own. The destination answers with RST or SYN-ACK, which no kernel limits
// in rate as it does ICMP: losses are counted by these.
package pathtrace
