// Package exporter sends what a sink of in-band telemetry found to a collector: Telemetry Report
// 2.0 of P4.org over UDP, several reports in a datagram.
package exporter
