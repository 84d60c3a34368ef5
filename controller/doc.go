// Package controller is the daemon that moves flows to other paths: it receives telemetry reports,
// keeps a weight per link, and decides with package te/reroute. One goroutine owns the state.
//
// Its API is JSON over HTTP on a Unix socket, served as the agent's:
//
//	GET    /v1/status     what runs
//	GET    /v1/links      links and their weights
//	GET    /v1/groups     paths of which flows that begin choose at head-ends
//	GET    /v1/flows      flows that were looked at, and their paths; one of them with
//	                      ?source, destination and protocol
//	GET    /v1/reroutes   the last decisions, with their reasons; ?moved=1 those that moved a flow
//	POST   /v1/reports    reports in the body; answers with the decisions on them
//	POST   /v1/simulate   a report in the body; answers with what would be decided now
//	PUT    /v1/pins       a flow and its path in the body: reports move it no more
//	DELETE /v1/pins       a flow in the body: reports may move it again
//	PUT    /v1/links      a link in the body, and whether it is up
//	POST   /v1/paths/ports    a flow and a path of a CFLB network; answers with the ports or the
//	                          flow label that take it
//	POST   /v1/paths/recover  a flow; answers with its path, and how each router came to it
//	POST   /v1/paths/best     a flow; answers with the best paths for it, and what takes them
//	GET    /v1/elephants      flows that were given paths
//	PUT    /v1/elephants      flows in the body, each by a name; answers with their paths
//	DELETE /v1/elephants      names of flows that leave
//	GET    /v1/events     decisions as they are made; ?moved=1 those that moved a flow
//	GET    /v1/caller     who asks, and what it may do
//	GET    /v1/openapi.json   this API, as OpenAPI 3.1 describes it
//	GET    /metrics       for Prometheus
package controller
