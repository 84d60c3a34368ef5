// Package cflb encodes a path through a network of equal-cost next hops in header fields that
// packets have anyway, and decodes one router's choice from them: Controllable per-Flow
// Load-Balancing (Detal, Paasch, van der Linden, Merindol, Avoine and Bonaventure, "Revisiting
// Flow-Based Load Balancing: Stateless Path Selection in Data Center Networks", Computer Networks
// 57, 2013).
//
// A path selector is a number of Length digits in base Radix; the digit at position hop limit mod
// Length is the index of the next hop that the router which receives the packet with this hop limit
// shall take. A cipher spreads the selector over the controllable fields, so that packets whose
// source controls nothing spread evenly. Routers hold no state per flow.
//
// Three things differ from the paper, each of them without cost in the header:
//
//   - A decoded number behind the greatest multiple of Radix^Length is hashed. Algorithm 1 takes
//     its digits, which are skewed if Radix is no power of two (ModuloRange keeps that behaviour).
//   - The fields that are not controllable include a port that is not, and leave out ports and
//     protocol if the IPv6 flow label alone is controllable, so that fragments and encrypted
//     packets follow the path (RFC 6438).
//   - A next hop that is down keeps its index: other paths stay as they are, and only packets for
//     that index are hashed.
package cflb
