// Package consistenthash assigns the slots of a table to weighted members, in exact shares, and
// moves as few slots as possible when the members change.
//
// Maglev and its kin compute a table from the members alone, and pay for it twice: shares are only
// nearly right, and a change of one member also moves slots between others. Here the table is a
// function of the previous table and the members:
//
//   - Quota: a member owns floor or ceil of slots * weight / total, always.
//
// - Minimal disruption: an update moves the fewest slots with which that is possible. Where a
// member may own either floor or
//
//	ceil, the count nearer to its present one wins.
//
// - Determinism: the same previous table and the same set of members, in any order, on any machine
// and in any release, give
//
//	the same table. Build is an update of the empty table.
//
// - Randomness: which of a member's slots move, and who gets them, is drawn by a generator keyed
// with the table's seed, so
//
//	flows of a lost member spread over all others, and tables with different seeds are independent.
//
// The price: two builders agree only if they saw the same sequence of updates. Where they must
// agree without having done so, there is Ranking: weighted rendezvous hashing, a function of the
// members alone that moves as few slots, with shares that are right up to chance only.
package consistenthash
