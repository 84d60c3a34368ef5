// Package api is the agent's HTTP API: JSON over HTTP/1.1 on a Unix socket. It has the types on the
// wire, the client, and the handler, which needs of the agent the methods of Agent alone.
//
//	GET    /v1/status
//	GET    /v1/services                    ?name= ?role= ?limit= ?continue=
//	GET    /v1/names                       of services
//	PUT    /v1/services/{name}             ?role=  body: ServiceSpec
//	DELETE /v1/services/{name}             ?role=
//	GET    /v1/backends                    ?service=
//	PUT    /v1/services/{name}/backends/{backend}  body: BackendSpec
//	DELETE /v1/services/{name}/backends/{backend}
//	GET    /v1/services/{name}/backends/{backend}/connections  asks the backend's host
//	GET    /v1/trace                       ?source= ?destination= ?protocol=
//	POST   /v1/explain                     body: Question
//	GET    /v1/capture                     ?service=, and what else Capture has  JSON Lines of CapturedPacket; the first is empty
//	GET    /v1/sids
//	GET    /v1/maps
//	GET    /v1/maps/{name}                 ?role= ?limit=
//	GET    /v1/counters
//	GET    /v1/policies
//	PUT    /v1/policies/{name}/lists/{list}  body: ListSpec
//	GET    /v1/flows                       flows of a head-end with paths of their own
//	PUT    /v1/flows                       body: FlowPath
//	DELETE /v1/flows                       body: Flow
//	GET    /v1/merge
//	GET    /v1/protections
//	PUT    /v1/protections/{name}            body: ProtectionSpec; dryRun=1: nothing is changed
//	DELETE /v1/protections/{name}
//	GET    /v1/topology
//	PUT    /v1/bgp                         body: BGPSpec
//	GET    /v1/bgp/peers
//	GET    /v1/bgp/routes
//	GET    /v1/routes
//	GET    /v1/routes/sources
//	GET    /v1/next-hops
//	GET    /v1/subflows                    MPTCP connections that the host has opened
//	GET    /v1/telemetry/watch
//	PUT    /v1/telemetry/watch/{name}        body: TelemetryWatchSpec
//	DELETE /v1/telemetry/watch/{name}
//	GET    /v1/monitor                     ?intervalMs=1000 &after=  JSON Lines of Sample
//	GET    /v1/events                      ?after=  JSON Lines of Event
//	GET    /v1/edge/services               as the configuration has them
//	PATCH  /v1/edge/services               body: Declaration
//	GET    /v1/bgp/neighbors               as the configuration has them
//	PATCH  /v1/bgp/neighbors               body: NeighborDeclaration
//	GET    /v1/config                      ?secrets=1  YAML, or JSON if accepted
//	POST   /v1/diff                        ?file=  body: node file
//	POST   /v1/apply                       ?file= ?dryRun=1 ?confirmSeconds=  body: node file
//	POST   /v1/confirm                     keeps what was applied with confirmSeconds
//	GET    /v1/history
//	GET    /v1/history/{number}            YAML, or JSON if accepted
//	POST   /v1/rollback                    ?number= ?dryRun=1
//	GET    /v1/caller                      who asks, and what it may do
//	GET    /v1/openapi.json                this API, as OpenAPI 3.1 describes it
//	GET    /metrics                        Prometheus text
//
// Every list is an object with "items". Every write answers with the Changes
// that it made, but a PUT of a protection with the protection, and one of a
// flow's path with the path. PUT creates or
// changes, and what the body leaves out stays as it is; with
// "If-None-Match: *" it only creates, with "If-Match: *" it only changes. A
// refused request is answered with an Error. A write that would end connections
// is refused (Conflict), unless it has ?breakConnections=1; DELETE, and a PUT of
// the state "down", say that themselves.
//
// GET /v1/config has the ETag of the configuration, GET and PATCH
// /v1/edge/services have it as their fingerprint. A write with it as If-Match
// changes that configuration alone, and is refused (Stale, 412) if another runs.
//
// A request with the header "Sextant-Role: read", or operate, may do what that
// role may, though its caller may do more.
//
// Keys are lowerCamel and end in their unit where there is one; times are RFC
// 3339; a port of 0 is any port.
package api
