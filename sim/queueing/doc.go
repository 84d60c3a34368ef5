// Package queueing has results of queueing theory about a pool of servers, and its
// processor-sharing server as an event machine.
//
// The load balancing literature (SRLB section V, Mitzenmacher's power of two
// choices) models a web server as C cores that share their time equally among
// the requests in progress, fed by a Poisson stream of requests with
// exponentially distributed demands. [MeanResponse] gives its mean response
// time in closed form, [Machine] plays it event by event, and [MeanInterval]
// tells how far a measured mean may lie from the true one by chance.
//
// Nothing here reads a clock, starts a goroutine or draws a random number:
// time and demands are passed in.
package queueing
