// Package packet simulates a network packet by packet: links with queues, TCP and MPTCP, and the
// ways to choose a path that the literature compares (ECMP, CFLB, flowlets, spraying,
// congestion-aware switches).
//
// Time is an integer number of picoseconds, and a run is determined by its configuration and seed.
// A packet costs one event per hop: a queue is first-in, first-out, so the time at which a packet
// leaves it is known when it enters. All state lies in flat slices that are reused; once these have
// grown, a packet allocates nothing. Data and acknowledgements share the queues.
//
// The package knows no clock, file or goroutine; independent runs can go on at once.
package packet
