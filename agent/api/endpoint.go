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

// Operation is a path of an API, as it is served and described.
type Operation struct {
	Method, Path string // of http.ServeMux
	Summary      string
	Needs        Permission
	Query        []Parameter
	Body         reflect.Type // nil: none
	Answer       reflect.Type // nil: not JSON
	Media        string       // of an answer that is not one value of JSON
	Serve        func(*http.Request) (any, error)
	Stream       http.HandlerFunc // in place of Serve
}

// Parameter is one of a query: its name, what it may be, and what it is for.
type Parameter struct {
	Name string
	Kind Kind
	What string
}

// Kind is what a parameter may be: an integer between two, or, the zero value, any text.
type Kind struct{ Least, Most int }

// Text is the kind of parameters that are no integers.
var Text Kind

// schema is that of a kind in JSON schemas.
func (k Kind) schema() object {
	if k == Text {
		return object{"type": "string"}
	}
	return object{"type": "integer", "minimum": k.Least, "maximum": k.Most}
}

// OfType is a type for Body and Answer of an Operation.
func OfType[T any]() reflect.Type { return reflect.TypeFor[T]() }

func of[T any]() reflect.Type { return OfType[T]() }

// DescriptionPath is where an API describes itself, as OpenAPI does.
const DescriptionPath = "/v1/openapi.json"

// Serve serves operations and their description, which has a title. Other paths are refused; the
// documentation of the named package lists them.
func Serve(documented, title string, operations []Operation) *http.ServeMux {
	answers := map[string]func(*http.Request) (any, error){
		"GET " + DescriptionPath: Needs(Read, func(*http.Request) (any, error) {
			return Describe(title, operations), nil
		}),
	}
	for _, o := range operations {
		if o.Serve != nil {
			answers[o.Method+" "+o.Path] = Needs(o.Needs, o.Serve)
		}
	}
	mux := Mux(documented, answers)
	for _, o := range operations {
		if o.Stream != nil {
			mux.Handle(o.Method+" "+o.Path, NeedsFirst(o.Needs, o.Stream))
		}
	}
	return mux
}

var (
	byRole    = Parameter{"role", Text, "edge, host, or another role of the node"}
	dryRun    = Parameter{"dryRun", Text, "1: check, and change nothing"}
	breaking1 = Parameter{breakFlag, Text, "1: go on although connections end"}
	// also as the header Last-Event-ID
	afterEvent = Parameter{"after", Text, "the number or id of the last event that is known; " +
		"0: tell all that is remembered; by default events from now on"}
	fileName = Parameter{"file", Text, "name of the file, for errors"}
	detail   = Parameter{"detail", Text, "node, service or backend: how finely; backend by default"}
	someRows = Parameter{"limit", Kind{1, dumpMax}, "entries at most"}
	onePage  = Parameter{"limit", Kind{1, servicesPage}, "a page of so many names, in their " +
		"order; 1000 at most, and with continue by default"}
	toConfirm = Parameter{"confirmSeconds", Kind{minConfirm, maxConfirm},
		"undo it after this time unless it is confirmed"}
	ofHistory = Parameter{"number", Kind{1, maxNumber},
		"of the history; the previous one by default"}
	interval = Parameter{"intervalMs", Kind{int(minInterval.Milliseconds()),
		int(maxInterval.Milliseconds())}, "time between two samples"}
)

// endpoints are all paths of the API.
func endpoints(h handler) []Operation {
	return slices.Concat(answers(h), declarations(h), streams(h))
}

// ofServices are the parameters of a list of services.
var ofServices = []Parameter{{"name", Text, "that service alone"}, byRole,
	onePage,
	{"continue", Text, "what the page before says: the next one"}}

// answers are the paths whose answers are values of JSON.
func answers(h handler) []Operation {
	return []Operation{
		{"GET", "/v1/status", "What the agent is and runs", Read, nil, nil, of[Status](), "",
			h.status, nil},
		{"GET", "/v1/caller", "Who asks, and what it may do", Read, nil, nil, of[Caller](), "",
			AnswerCaller, nil},
		{"GET", "/v1/services", "Services with their counters", Read,
			ofServices, nil, of[ServiceList](), "", h.services, nil},
		{"GET", "/v1/names", "Names of services, without their counters", Read, nil, nil,
			of[List[ServiceName]](), "", h.names, nil},
		{"PUT", "/v1/services/{name}", "Create or change a service", Admin,
			[]Parameter{byRole, breaking1}, of[ServiceSpec](), of[Changes](), "",
			h.putService, nil},
		{"DELETE", "/v1/services/{name}", "Delete a service", Admin, []Parameter{byRole}, nil,
			of[Changes](), "", h.deleteService, nil},
		{"GET", "/v1/backends", "Backends with their counters", Read,
			[]Parameter{{"service", Text, "those of that service alone"}}, nil,
			of[List[Backend]](), "", h.backends, nil},
		{"PUT", "/v1/services/{name}/backends/{backend}", "Create or change a backend", Operate,
			[]Parameter{breaking1}, of[BackendSpec](), of[Changes](), "",
			h.putBackend, nil},
		{"DELETE", "/v1/services/{name}/backends/{backend}", "Delete a backend", Admin, nil, nil,
			of[Changes](), "", h.deleteBackend, nil},
		{"GET", "/v1/services/{name}/backends/{backend}/connections",
			"Connections that a backend has, as its host says", Read, nil, nil,
			of[BackendConnections](), "", h.connections, nil},
		{"GET", "/v1/trace", "What an edge does with a flow", Read,
			[]Parameter{{"source", Text, "ADDRESS:PORT"}, {"destination", Text,
				"ADDRESS:PORT"}, {"protocol", Text, "tcp or udp"}}, nil, of[Trace](), "",
			h.trace, nil},
		{"POST", "/v1/explain", "What the data plane does with packets", Operate, nil,
			of[Question](), of[List[Explanation]](), "",
			h.explain, nil},
		{"GET", "/v1/sids", "SIDs of this node", Read, nil, nil, of[List[SID]](), "",
			h.sids, nil},
		{"GET", "/v1/maps", "Tables in the kernel", Read, nil, nil, of[List[Map]](), "",
			h.maps, nil},
		{"GET", "/v1/maps/{name}", "Entries of a table", Read,
			[]Parameter{byRole, someRows}, nil, of[List[MapEntry]](),
			"", h.dumpMap, nil},
		{"GET", "/v1/counters", "Packets by outcome and reason", Read, nil, nil,
			of[List[Counters]](), "", h.counters, nil},
		{"GET", "/v1/policies", "SR policies", Read, nil, nil, of[List[Policy]](), "",
			h.policies, nil},
		{"PUT", "/v1/policies/{name}/lists/{list}", "Mark a segment list up or down", Operate, nil,
			of[ListSpec](), of[Changes](), "", h.putList, nil},
		{"GET", "/v1/flows", "Flows with paths of their own", Read, nil, nil,
			of[List[FlowPath]](), "", h.flows, nil},
		{"PUT", "/v1/flows", "Give a flow a path", Operate, nil, of[FlowPath](), of[FlowPath](), "",
			h.putFlow, nil},
		{"DELETE", "/v1/flows", "Let the rules choose for a flow", Operate, nil, of[Flow](),
			of[struct{}](), "", h.deleteFlow, nil},
		{"GET", "/v1/merge", "Protected flows of an egress", Read, nil, nil,
			of[List[MergedFlow]](), "", h.merge, nil},
		{"GET", "/v1/protections", "Protections of a head-end", Read, nil, nil,
			of[List[Protection]](), "", h.protections, nil},
		{"PUT", "/v1/protections/{name}", "Create or change a protection", Admin,
			[]Parameter{dryRun}, of[ProtectionSpec](), of[Protection](), "",
			h.putProtection, nil},
		{"DELETE", "/v1/protections/{name}", "Delete a protection", Admin, nil, nil, of[Changes](),
			"", h.deleteProtection, nil},
		{"GET", "/v1/topology", "Network that protections are computed on", Read, nil, nil,
			of[Topology](), "", h.topology, nil},
		{"PUT", "/v1/bgp", "Change what is announced", Operate, nil, of[BGPSpec](), of[Changes](),
			"", h.putBGP, nil},
		{"GET", "/v1/bgp/peers", "BGP neighbors", Read, nil, nil, of[List[BGPPeer]](), "",
			h.bgpPeers, nil},
		{"GET", "/v1/bgp/routes", "Routes to VIPs", Read, nil, nil, of[List[BGPRoute]](), "",
			h.bgpRoutes, nil},
		{"GET", "/v1/routes", "Routes of VRFs", Read, nil, nil, of[List[Route]](), "",
			h.routes, nil},
		{"GET", "/v1/routes/sources", "Sources of routes", Read, nil, nil, of[List[RouteSource]](),
			"", h.routeSources, nil},
		{"GET", "/v1/next-hops", "Destinations whose next hops sources choose", Read, nil, nil,
			of[List[NextHops]](), "", h.nextHops, nil},
		{"GET", "/v1/subflows", "MPTCP connections of a host and their subflows", Read, nil, nil,
			of[List[MPTCPConnection]](), "", h.subflows, nil},
		{"GET", "/v1/telemetry/watch", "Watch list of a source of telemetry", Read, nil, nil,
			of[List[TelemetryWatch]](), "", h.telemetryWatches, nil},
		{"PUT", "/v1/telemetry/watch/{name}", "Create or change an item of the watch list", Operate,
			[]Parameter{breaking1}, of[TelemetryWatchSpec](), of[Changes](), "",
			h.putTelemetryWatch, nil},
		{"DELETE", "/v1/telemetry/watch/{name}", "Delete an item of the watch list", Operate, nil,
			nil, of[Changes](), "", h.deleteTelemetryWatch, nil},
		{"POST", "/v1/diff", "What applying a node file would change", Read, []Parameter{fileName},
			of[config.Node](), of[Changes](), "", h.diff, nil},
		{"POST", "/v1/apply", "Make a node file the running configuration", Admin,
			[]Parameter{fileName, dryRun, breaking1, toConfirm}, of[config.Node](),
			of[Changes](), "", h.apply, nil},
		{"POST", "/v1/confirm", "Keep what was applied with confirmSeconds", Admin, nil, nil,
			of[struct{}](), "", h.confirm, nil},
		{"GET", "/v1/history", "Configurations that ran", Read, nil, nil, of[List[Applied]](), "",
			h.history, nil},
		{"POST", "/v1/rollback", "Run an earlier configuration again", Admin,
			[]Parameter{ofHistory, dryRun, breaking1}, nil, of[Changes](), "", h.rollback,
			nil},
	}
}

// declarations are the paths for software that keeps services and neighbors.
func declarations(h handler) []Operation {
	return []Operation{
		{"GET", "/v1/edge/services", "Services of the edge as its configuration has them", Read,
			nil, nil, of[DeclaredList](), "",
			h.declared, nil},
		{"PATCH", "/v1/edge/services", "Set, add and remove services of the edge in one change",
			Admin, []Parameter{breaking1}, of[Declaration](), of[DeclarationMade](), "",
			h.declare, nil},
		{"GET", "/v1/bgp/neighbors", "BGP neighbors as the configuration has them", Read, nil, nil,
			of[NeighborList](), "", h.neighbors, nil},
		{"PATCH", "/v1/bgp/neighbors", "Set, add and remove BGP neighbors in one change", Admin,
			[]Parameter{breaking1}, of[NeighborDeclaration](), of[DeclarationMade](), "",
			h.declareNeighbors, nil},
	}
}

// streams are the paths whose answers are not one value of JSON.
func streams(h handler) []Operation {
	return []Operation{
		{"GET", "/v1/history/{number}", "A configuration that ran, without secrets", Read, nil, nil,
			nil, "application/yaml", nil, h.pastConfig},
		{"GET", "/v1/config", "The running configuration", Read, nil, nil, nil, "application/yaml",
			nil, h.config},
		{"GET", "/v1/monitor", "Counters, services and events as they change", Read,
			[]Parameter{interval, afterEvent}, nil,
			of[Sample](),
			"application/jsonl", nil, h.monitor},
		{"GET", "/v1/events", "What happens to services, backends, policies and paths", Read,
			[]Parameter{afterEvent}, nil, of[Event](), "application/jsonl", nil,
			h.events},
		{"GET", "/v1/capture", "Packets as they arrive", Admin, nil, nil, of[CapturedPacket](),
			"application/jsonl", nil, h.capture},
		{"GET", "/metrics", "Metrics for Prometheus", Read, []Parameter{detail}, nil, nil,
			"text/plain", nil, h.scrape},
	}
}
