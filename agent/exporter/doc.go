// Package exporter sends the telemetry that a sink took out of packets to a collector: Telemetry
// Report 2.0 of P4.org over UDP, several reports in a datagram.
package exporter
