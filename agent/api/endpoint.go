package api

import (
	"net/http"
	"reflect"
	"slices"

	"sextant/config"
)

// Permission is what a caller may do.
type Permission string

// The permissions, each of which includes those before it.
const (
	Read    Permission = "read"    // look at everything but secrets
	Operate Permission = "operate" // drain, weigh, mark and trace
	Admin   Permission = "admin"   // change the configuration, read secrets, capture packets
)

// endpoint is a path of the API, as it is served and described.
type endpoint struct {
	method, path string
	summary      string
	needs        Permission
	query        []parameter
	body         reflect.Type // nil: none
	answer       reflect.Type // nil: not JSON
	media        string       // of an answer that is not one value of JSON
	serve        func(handler) func(*http.Request) (any, error)
	stream       func(handler) http.HandlerFunc // in place of serve
}

// parameter is one of a query.
type parameter struct{ name, kind, what string }

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

var (
	byRole    = parameter{"role", "string", "edge, host, or another role of the node"}
	dryRun    = parameter{"dryRun", "string", "1: check, and change nothing"}
	breaking1 = parameter{breakFlag, "string", "1: go on although connections end"}
	// also as the header Last-Event-ID
	afterEvent = parameter{"after", "string", "the number or id of the last event that is known; " +
		"0: tell all that is remembered; by default events from now on"}
	fileName = parameter{"file", "string", "name of the file, for errors"}
)

// endpoints are all paths of the API.
func endpoints() []endpoint { return slices.Concat(answers(), declarations(), streams()) }

// answers are the paths whose answers are values of JSON.
func answers() []endpoint {
	type answer = func(*http.Request) (any, error)
	return []endpoint{
		{"GET", "/v1/status", "What the agent is and runs", Read, nil, nil, of[Status](), "",
			func(h handler) answer { return h.status }, nil},
		{"GET", "/v1/caller", "Who asks, and what it may do", Read, nil, nil, of[Caller](), "",
			func(handler) answer { return AnswerCaller }, nil},
		{"GET", "/v1/services", "Services with their counters", Read,
			[]parameter{{"name", "string", "that service alone"}, byRole}, nil, of[List[Service]](),
			"", func(h handler) answer { return h.services }, nil},
		{"PUT", "/v1/services/{name}", "Create or change a service", Admin,
			[]parameter{byRole, breaking1}, of[ServiceSpec](), of[Changes](), "",
			func(h handler) answer { return h.putService }, nil},
		{"DELETE", "/v1/services/{name}", "Delete a service", Admin, []parameter{byRole}, nil,
			of[Changes](), "", func(h handler) answer { return h.deleteService }, nil},
		{"GET", "/v1/backends", "Backends with their counters", Read,
			[]parameter{{"service", "string", "those of that service alone"}}, nil,
			of[List[Backend]](), "", func(h handler) answer { return h.backends }, nil},
		{"PUT", "/v1/services/{name}/backends/{backend}", "Create or change a backend", Operate,
			[]parameter{breaking1}, of[BackendSpec](), of[Changes](), "",
			func(h handler) answer { return h.putBackend }, nil},
		{"DELETE", "/v1/services/{name}/backends/{backend}", "Delete a backend", Admin, nil, nil,
			of[Changes](), "", func(h handler) answer { return h.deleteBackend }, nil},
		{"GET", "/v1/services/{name}/backends/{backend}/connections",
			"Connections that a backend has, as its host says", Read, nil, nil,
			of[BackendConnections](), "", func(h handler) answer { return h.connections }, nil},
		{"GET", "/v1/trace", "What an edge does with a flow", Read,
			[]parameter{{"source", "string", "ADDRESS:PORT"}, {"destination", "string",
				"ADDRESS:PORT"}, {"protocol", "string", "tcp or udp"}}, nil, of[Trace](), "",
			func(h handler) answer { return h.trace }, nil},
		{"POST", "/v1/explain", "What the data plane does with packets", Operate, nil,
			of[Question](), of[List[Explanation]](), "",
			func(h handler) answer { return h.explain }, nil},
		{"GET", "/v1/sids", "SIDs of this node", Read, nil, nil, of[List[SID]](), "",
			func(h handler) answer { return h.sids }, nil},
		{"GET", "/v1/maps", "Tables in the kernel", Read, nil, nil, of[List[Map]](), "",
			func(h handler) answer { return h.maps }, nil},
		{"GET", "/v1/maps/{name}", "Entries of a table", Read,
			[]parameter{byRole, {"limit", "integer", "entries at most"}}, nil, of[List[MapEntry]](),
			"", func(h handler) answer { return h.dumpMap }, nil},
		{"GET", "/v1/counters", "Packets by outcome and reason", Read, nil, nil,
			of[List[Counters]](), "", func(h handler) answer { return h.counters }, nil},
		{"GET", "/v1/policies", "SR policies", Read, nil, nil, of[List[Policy]](), "",
			func(h handler) answer { return h.policies }, nil},
		{"PUT", "/v1/policies/{name}/lists/{list}", "Mark a segment list up or down", Operate, nil,
			of[ListSpec](), of[Changes](), "", func(h handler) answer { return h.putList }, nil},
		{"GET", "/v1/flows", "Flows with paths of their own", Read, nil, nil,
			of[List[FlowPath]](), "", func(h handler) answer { return h.flows }, nil},
		{"PUT", "/v1/flows", "Give a flow a path", Operate, nil, of[FlowPath](), of[FlowPath](), "",
			func(h handler) answer { return h.putFlow }, nil},
		{"DELETE", "/v1/flows", "Let the rules choose for a flow", Operate, nil, of[Flow](),
			of[struct{}](), "", func(h handler) answer { return h.deleteFlow }, nil},
		{"GET", "/v1/merge", "Protected flows of an egress", Read, nil, nil,
			of[List[MergedFlow]](), "", func(h handler) answer { return h.merge }, nil},
		{"GET", "/v1/protections", "Protections of a head-end", Read, nil, nil,
			of[List[Protection]](), "", func(h handler) answer { return h.protections }, nil},
		{"PUT", "/v1/protections/{name}", "Create or change a protection", Admin,
			[]parameter{dryRun}, of[ProtectionSpec](), of[Protection](), "",
			func(h handler) answer { return h.putProtection }, nil},
		{"DELETE", "/v1/protections/{name}", "Delete a protection", Admin, nil, nil, of[Changes](),
			"", func(h handler) answer { return h.deleteProtection }, nil},
		{"GET", "/v1/topology", "Network that protections are computed on", Read, nil, nil,
			of[Topology](), "", func(h handler) answer { return h.topology }, nil},
		{"PUT", "/v1/bgp", "Change what is announced", Operate, nil, of[BGPSpec](), of[Changes](),
			"", func(h handler) answer { return h.putBGP }, nil},
		{"GET", "/v1/bgp/peers", "BGP neighbors", Read, nil, nil, of[List[BGPPeer]](), "",
			func(h handler) answer { return h.bgpPeers }, nil},
		{"GET", "/v1/bgp/routes", "Routes to VIPs", Read, nil, nil, of[List[BGPRoute]](), "",
			func(h handler) answer { return h.bgpRoutes }, nil},
		{"GET", "/v1/routes", "Routes of VRFs", Read, nil, nil, of[List[Route]](), "",
			func(h handler) answer { return h.routes }, nil},
		{"GET", "/v1/routes/sources", "Sources of routes", Read, nil, nil, of[List[RouteSource]](),
			"", func(h handler) answer { return h.routeSources }, nil},
		{"GET", "/v1/next-hops", "Destinations whose next hops sources choose", Read, nil, nil,
			of[List[NextHops]](), "", func(h handler) answer { return h.nextHops }, nil},
		{"GET", "/v1/telemetry/watch", "Watch list of a source of telemetry", Read, nil, nil,
			of[List[TelemetryWatch]](), "",
			func(h handler) answer { return h.telemetryWatches }, nil},
		{"PUT", "/v1/telemetry/watch/{name}", "Create or change an item of the watch list", Operate,
			[]parameter{breaking1}, of[TelemetryWatchSpec](), of[Changes](), "",
			func(h handler) answer { return h.putTelemetryWatch }, nil},
		{"DELETE", "/v1/telemetry/watch/{name}", "Delete an item of the watch list", Operate, nil,
			nil, of[Changes](), "", func(h handler) answer { return h.deleteTelemetryWatch }, nil},
		{"POST", "/v1/diff", "What applying a node file would change", Read, []parameter{fileName},
			of[config.Node](), of[Changes](), "", func(h handler) answer { return h.diff }, nil},
		{"POST", "/v1/apply", "Make a node file the running configuration", Admin,
			[]parameter{fileName, dryRun, breaking1, {"confirmSeconds", "integer",
				"undo it after this time unless it is confirmed"}}, of[config.Node](),
			of[Changes](), "", func(h handler) answer { return h.apply }, nil},
		{"POST", "/v1/confirm", "Keep what was applied with confirmSeconds", Admin, nil, nil,
			of[struct{}](), "", func(h handler) answer { return h.confirm }, nil},
		{"GET", "/v1/history", "Configurations that ran", Read, nil, nil, of[List[Applied]](), "",
			func(h handler) answer { return h.history }, nil},
		{"POST", "/v1/rollback", "Run an earlier configuration again", Admin,
			[]parameter{{"number", "integer", "of the history; the previous one by default"},
				dryRun,
				breaking1}, nil, of[Changes](), "", func(h handler) answer { return h.rollback },
			nil},
	}
}

// declarations are the paths for software that keeps an edge's services.
func declarations() []endpoint {
	type answer = func(*http.Request) (any, error)
	return []endpoint{
		{"GET", "/v1/edge/services", "Services of the edge as its configuration has them", Read,
			nil, nil, of[DeclaredList](), "",
			func(h handler) answer { return h.declared }, nil},
		{"PATCH", "/v1/edge/services", "Set, add and remove services of the edge in one change",
			Admin, []parameter{breaking1}, of[Declaration](), of[DeclarationMade](), "",
			func(h handler) answer { return h.declare }, nil},
	}
}

// streams are the paths whose answers are not one value of JSON.
func streams() []endpoint {
	return []endpoint{
		{"GET", "/v1/history/{number}", "A configuration that ran, without secrets", Read, nil, nil,
			nil, "application/yaml", nil, func(h handler) http.HandlerFunc { return h.pastConfig }},
		{"GET", "/v1/config", "The running configuration", Read, nil, nil, nil, "application/yaml",
			nil, func(h handler) http.HandlerFunc { return h.config }},
		{"GET", "/v1/monitor", "Counters, services and events as they change", Read,
			[]parameter{{"intervalMs", "integer", "time between two samples"}, afterEvent}, nil,
			of[Sample](),
			"application/jsonl", nil, func(h handler) http.HandlerFunc { return h.monitor }},
		{"GET", "/v1/events", "What happens to services, backends, policies and paths", Read,
			[]parameter{afterEvent}, nil, of[Event](), "application/jsonl", nil,
			func(h handler) http.HandlerFunc { return h.events }},
		{"GET", "/v1/capture", "Packets as they arrive", Admin, nil, nil, of[CapturedPacket](),
			"application/jsonl", nil, func(h handler) http.HandlerFunc { return h.capture }},
		{"GET", "/metrics", "Metrics for Prometheus", Read, nil, nil, nil, "text/plain", nil,
			func(h handler) http.HandlerFunc { return h.agent.Metrics().ServeHTTP }},
	}
}
