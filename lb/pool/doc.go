// Package pool computes the chain of each bucket: the backends to which its packets are offered, in
// order.
//
// A service's flows hash into buckets. Each bucket has a chain: first its current candidates, which
// a new connection is offered to one after the other, then the backends that were candidates
// before, newest first, because connections from then may still live there. A packet of an old
// connection travels along the chain until a host recognises it, so changing the pool breaks no
// connection, and no edge needs to remember one. The idea is daisy chaining as in Faild (Araújo et
// al., "Balancing on the Edge", NSDI 2018), carried inside the packet and with room for several
// previous owners.
//
// A Generation is one immutable set of chains. Next makes the following one from the backends as
// they are now, and touches as few buckets as possible.
package pool
