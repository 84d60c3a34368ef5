// Package shadowvrf orders the changes of a routing table such that another table, its shadow,
// always holds the previous next hops: Shadow VRF of Nakamura et al., "Exploiting SRv6 for
// Stateless and Per-Connection-Consistent Load Balancing" (IEEE Access, 2024), section III-C.
// Packets that went astray by a change are sent there, and find the next hops to which their
// connections belong.
package shadowvrf
