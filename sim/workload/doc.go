// Package workload says which requests come when, and how much CPU time each needs: the loads of
// experiments, of the load generator and of simulations. The same seed is the same load, whoever
// plays it.
//
// [Poisson] is the load of queueing theory, [Day] a day of a web site, and [ReadLog] the load that
// an access log has recorded.
package workload
