// Package collector computes the state of links and paths from telemetry reports.
//
// A Table takes datagrams of telemetry (Telemetry Report 2.0 of P4.org), and keeps per link how
// long its queue was, how long packets stayed and how much of it was used, per flow the nodes that
// its last packet passed, and per exporter which reports were lost. Everything that a datagram can
// make it remember is bounded. A Reader takes datagrams from a UDP socket, many per system call.
// Neither allocates memory per report.
package collector
