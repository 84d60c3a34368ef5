// Package frer recognises copies of packets: sequence numbers, and elimination by the vector
// recovery of IEEE 802.1CB-2017 section 7.4.3 (RFC 8655 calls it PREOF's packet elimination
// function).
//
// A [Recovery] decides about one number at a time. It is the twin of bpf/include/recovery.h. Its
// history is a ring of words, each for a block of 32 numbers: which of them were seen, and a tag
// that says which block it is. So a number costs one word, whatever the history's length, nothing
// is shifted or cleared, and in the data plane a compare-and-swap of that word decides between CPUs
// without a lock. Why tags do not come again: docs/reference/dataplane.md, "Egress".
//
// Differences from the standard: numbers have up to 32 bits, so that they do not wrap within a
// history; a sender that was restarted says so by its epoch, besides the reset timer; what was seen
// is not forgotten after a pause if the next number follows; what is missing is known at once
// rather than when it leaves the history, and not counted in advance after a reset.
package frer
