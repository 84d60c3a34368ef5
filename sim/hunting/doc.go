// Package hunting simulates service hunting: which server accepts each request, and the response
// times.
//
// A server is the machine of package queueing with a listen queue; the candidates of a request come
// from the chains of package pool, and the servers decide by package accept: the code that the edge
// and the hosts run. Packets take no time unless [Config].Handshake says so. Besides hunting there
// are two ideals that know the load of servers without asking them: the least loaded of the
// candidates (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001), and the
// least loaded of all.
package hunting
