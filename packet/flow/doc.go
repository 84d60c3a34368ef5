// Package flow names a transport flow and hashes it.
//
// Every edge of a cluster must send the packets of one flow to the same bucket, and a client must
// not be able to choose source ports that pile its connections onto one server. So the hash is
// keyed: SipHash-1-3 with a 128-bit secret that all edges share and nobody outside knows. From the
// one 64-bit result come the bucket (upper half), the IPv6 flow label (lower 20 bits) and the
// choice among equal paths (lowest 3 bits). The eBPF data plane computes the same function.
package flow
