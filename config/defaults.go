package config

// What a node file need not say.
const (
	DefaultState      = "/var/lib/sextant"
	DefaultSocket     = "/run/sextant/agent.sock"
	DefaultMTU        = 1500
	DefaultHopLimit   = 64
	DefaultBuckets    = 65537
	DefaultCandidates = 2
	DefaultWeight     = 1
)

// dynamicDefaults are the parameters of the SRLB paper, section III-C. Only
// the number of workers, which is a property of the server, has no default.
var dynamicDefaults = Accept{Policy: Dynamic, Window: 50, LowPermille: 400, HighPermille: 600, Initial: 1}

func newNode() *Node {
	return &Node{
		Domain: Domain{MTU: DefaultMTU},
		State:  DefaultState,
		API:    API{Socket: DefaultSocket},
	}
}

func newEdge() *Edge {
	return &Edge{Encapsulation: Carrier, HopLimit: DefaultHopLimit, Buckets: DefaultBuckets}
}

func newEdgeInterface() EdgeInterface { return EdgeInterface{Side: Mixed, Mode: Auto} }

func newService(name string) Service {
	return Service{Name: name, Endpoint: Endpoint{Protocol: TCP}, Candidates: DefaultCandidates}
}

func newBackend(name string) Backend { return Backend{Name: name, Weight: DefaultWeight, State: Up} }

func newHostInterface() HostInterface { return HostInterface{Mode: Auto} }

func newHostService(name string) HostService {
	return HostService{Name: name, Endpoint: Endpoint{Protocol: TCP}, Accept: newAccept(Always)}
}

func newAccept(p Policy) Accept {
	if p == Dynamic {
		return dynamicDefaults
	}
	return Accept{Policy: p}
}
