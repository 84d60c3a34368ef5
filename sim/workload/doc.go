// Package workload generates arrivals of requests with the CPU time of each, for experiments, the
// load generator and simulations. The same seed gives the same requests in all of them.
//
// [Poisson] is the load of queueing theory, [Day] a day of a web site, and [ReadLog] the load that
// an access log has recorded.
package workload
