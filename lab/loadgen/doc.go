// Package loadgen loads an HTTP server and measures response times as clients see them.
//
// [Run] is an open loop: requests are sent at the times of a stream of package
// workload, a Poisson stream by default, each on a connection of its own, whether or not earlier
// ones have been answered, and a response time counts from the time at which its request was meant
// to be sent. A closed loop, or a clock that starts when the generator gets round to sending, hides
// just the delays that matter ("coordinated omission"). The same seed gives the same arrivals and
// service times, so two ways of balancing meet the same load.
//
// [Download] is a closed loop: some workers fetch the same document again and
// again, and compare every byte.
package loadgen
