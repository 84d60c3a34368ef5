// Package pathtrace traces each path between two hosts of a network with controllable load
// balancing (CFLB): its routers, whether they follow selectors, and the link that loses packets.
//
// A probe is a TCP SYN whose selector encodes a path. The routers of the path are those that answer
// with Time Exceeded as the hop limit grows; a selector is read by hop limit, so that each probe is
// encoded for its own. The destination answers with RST or SYN-ACK, which no kernel limits in rate
// as it does ICMP: losses are counted by these.
package pathtrace
