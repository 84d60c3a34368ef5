package agent

import (
	"runtime"

	"sextant/agent/edge"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// Memory is what a node takes at most, in bytes, as far as the node file tells: when all buckets of
// all services have previous owners. Of an agent that has just begun most services hold nothing for
// their buckets.
type Memory struct {
	Agent  uint64
	Kernel uint64 // tables of the programs
}

// What does not depend on services, measured: the agent's code and stacks, and the fixed tables of
// a role, of which those per processor are the largest part.
const (
	perAgent   = 48 << 20
	perRole    = 16 << 20
	perFlowlet = 192     // of a flow, with its place in the table
	perBackend = 1 << 10 // of the configuration, its texts and what is known of the backend
)

// EstimateMemory returns what the node takes. Services that keep a number of buckets from before
// ([config.Edge.BucketsOf]) take more.
func EstimateMemory(n *config.Node) (m Memory) {
	m.Agent = perAgent
	m.Kernel = perRole * uint64(len(n.ProgramRoles()))
	if n.Flowlets != nil {
		m.Kernel += uint64(perFlowlet * n.Flowlets.Flows)
	}
	if n.Edge == nil {
		return m
	}
	m.Kernel += uint64(8 * n.Edge.FlowCache.Entries)
	capacity, _ := edge.CapacityOf(n.Edge)
	m.Kernel += uint64(capacity.KernelBytes(runtime.NumCPU()))
	for i := range n.Edge.Services {
		s := edge.Service{Service: n.Edge.Services[i]}
		s.Buckets, _ = n.Edge.BucketsOf(&s.Service)
		kept := poolFootprint(&s, n)
		m.Agent += uint64(kept + kept*heapRoom/100)
		capacity = capacity.AtLeast(datapath.CapacityForTable(s.Buckets))
		m.Kernel += uint64(datapath.TableBytes(s.Buckets))
	}
	if len(n.Edge.Services) > 0 { // the last block is not full
		m.Kernel += uint64(capacity.BlockBytes())
	}
	return m
}

func poolFootprint(s *edge.Service, n *config.Node) int {
	spec := s.Spec(n)
	if spec.Policy != pool.Offer {
		spec.Candidates = 1
	}
	return spec.Footprint(len(s.Backends)) + len(s.Backends)*perBackend
}
