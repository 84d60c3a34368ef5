// Package listener is the daemon of "sextant telemetry listen": it receives reports by UDP into a
// collector.Table, which one goroutine owns, and serves the table by its API.
//
// Its API is JSON over HTTP on a Unix socket, served as the agent's:
//
//	GET /v1/links      the links that nodes told of
//	GET /v1/exporters  what sends reports, and how many of them were lost
//	GET /v1/path       the last path of a flow: ?source, destination and protocol
//	GET /metrics       for Prometheus
package listener
