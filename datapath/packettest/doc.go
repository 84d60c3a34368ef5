// Package packettest builds the packets that tests compare with, for the Go model of the data plane
// and for the eBPF programs alike.
//
// A [Packet] is what a client or server sends, an [Outer] what an edge puts around it, and a [Link]
// what surrounds both on the wire. They are built with gopacket, lengths and checksums too, and
// what it cannot build is written byte by byte, so that nothing of the code under test has a part
// in what it is compared with.
package packettest
