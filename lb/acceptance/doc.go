// Package acceptance implements acceptance policies: whether a host accepts a new connection or
// passes it on to the next candidate.
//
// With service hunting (Desmouceaux et al., "SRLB: The Power of Choices in Load Balancing with
// Segment Routing", 2017) a SYN visits its candidate servers in turn. Each but the last asks its
// policy; the last must accept. Static and Dynamic are the paper's Algorithms 1 and 2. Average and
// Delay are our own: they need no tuning, and no number that an operator would have to find. All
// are over integers, because the eBPF program that runs the same function has no floating point.
//
// # Average
//
// Refusing is right if the connection meets less load where it goes. With one candidate left, who
// must accept, it meets the mean load of a server, a_1. With two left, the next one keeps it if its
// own load X is at most a_1, and else passes it on: the connection meets min(X, a_1) in the mean,
// a_2. With three left it meets a_3, the mean of min(X, a_2). So a server accepts with k candidates
// left if its load is at most a_k: the stopping rule of optimal search (DeGroot, Optimal
// Statistical Decisions, chapter 13), with load as the price.
//
// Every offer is a look at the load of a server at a random time, so each server learns the three
// means as moving averages of its own load. Those of different servers drift apart, and a server
// that is always busy would find that normal. So a SYN that is passed on tells the next candidate
// the first mean of who refused it, in twelve bits that are free in every encapsulation, and the
// receiver moves its own halfway there. That is averaging by gossip (Boyd et al., "Randomized
// Gossip Algorithms", 2006), and makes the mean that of all servers without a packet more.
//
// # Delay
//
// The same rule with time as the price: how long a connection would take here. The server knows how
// long a core works on one from the time that its cores had connections and from how many ended in
// it; a connection takes that, and longer if cores are shared ([Policy.Power]). Servers that know
// little go by what is usual, so two means are told, in turn.
package acceptance
