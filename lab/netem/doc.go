// Package netem decides what an emulated link does to each packet: when it arrives at the other
// end, how often, or that it is lost.
//
// A decision is a function of the link's profile, its seed, and the times, sizes and numbers of its
// packets alone. All that needs chance is drawn from the packet's number, not from a generator that
// moves on, so a change of one quantity leaves the draws for the others as they are: packet 1,000
// is lost at 5 % whenever it is lost at 2 %.
//
// A packet passes, in this order, a queue in front of a token bucket (rate), the wire (loss,
// duplication) and the way (delay, jitter, reordering). That is the order of a real line: what the
// wire loses has used the line's capacity. tc-netem(8) loses packets before they are queued;
// without a rate the two are the same.
package netem
