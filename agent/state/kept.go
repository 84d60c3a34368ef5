package state

import (
	"cmp"
	"maps"
	"time"

	"sextant/agent/health"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/discovery"
	"sextant/te/srpolicy"
)

// Kept is the content of the state file.
type Kept struct {
	// File is the fingerprint of the node file that Node began with: as long as the file stays the
	// same, Node is what runs.
	File string `json:"file"`
	// Applied is the fingerprint of the node file that was applied last, if one was since the agent
	// began: the file with which the next one begins may be that one, too.
	Applied string `json:"applied,omitempty"`
	Text           // its Node is whole in memory
	// Secret is a mark by which another secret is known, and nothing else.
	Secret string `json:"secret,omitempty"`
	// Numbers of services in the tables of edge and host, by endpoint, and ids of SIDs that have
	// none of their own.
	EdgeServices map[string]uint32 `json:"edgeServices"`
	HostServices map[string]uint32 `json:"hostServices"`
	SIDs         SIDs              `json:"sids"`
	// Learned are the backends that BGP told of, who hold until it can tell again.
	Learned []discovery.Member `json:"learned,omitempty"`
	// Failing are the backends whose health checks failed last.
	Failing []health.Key `json:"failing,omitempty"`
	// Policies are the numbers of SR policies and of their segment lists, by name.
	Policies map[string]PolicyNumbers `json:"policies,omitempty"`
	// Steered is what traffic policies had, by name.
	Steered map[string]*Steered `json:"steered,omitempty"`
	// Computed are the policies that no file has.
	Computed Computed `json:"computed,omitzero"`
	// ListsDown are the segment lists that were found not to carry packets.
	ListsDown []ListKey `json:"listsDown,omitempty"`
	// Epoch of the numbers that the head-end gave last; nil: it gave none yet.
	Epoch *uint8 `json:"epoch,omitempty"`
	// Numbers are those with which policies go on in that epoch after the node was unloaded, by
	// index.
	Numbers map[uint32]uint64 `json:"numbers,omitempty"`
	// Merges are the numbers of protected flows in the tables of the egress.
	Merges []MergeNumber `json:"merges,omitempty"`
	// Tables are those of the kernel that were written.
	Tables []int `json:"tables,omitempty"`
	// Away are the backends that are down, or back a moment ago and held.
	Away []health.Key `json:"away,omitempty"`
	// Unconfirmed is how to undo what runs; nil: it needs no confirmation.
	Unconfirmed *Unconfirmed `json:"unconfirmed,omitempty"`
	// Former is what the edge knows of flows from before another secret or fewer buckets.
	Former *Former `json:"former,omitempty"`
}

// Clone copies the numbers of services and SIDs, which a change may give.
func (k Kept) Clone() Kept {
	k.EdgeServices, k.HostServices, k.SIDs = maps.Clone(k.EdgeServices), maps.Clone(k.HostServices),
		k.SIDs.Clone()
	return k
}

// ListKey names a segment list of a policy. Lists of one name in a policy's paths are one list.
type ListKey struct {
	Policy string `json:"policy"`
	List   string `json:"list"`
}

// Computed are policies that the agent made itself, beside those of the node file, and the rules
// that lead to them, which come after those of the node file. Indexes are ignored, and flows of 0
// chosen: numberPolicies does.
type Computed struct {
	Rules    []srpolicy.Rule   `json:"rules,omitempty"`
	Policies []srpolicy.Policy `json:"policies,omitempty"`
}

// Compare orders by policy, then by list.
func (k ListKey) Compare(o ListKey) int {
	return cmp.Or(cmp.Compare(k.Policy, o.Policy), cmp.Compare(k.List, o.List))
}

// PolicyNumbers are the index of a policy in the kernel's tables, and the numbers of its segment
// lists, by name. They stay for as long as the names do, over restarts too: packets are numbered
// and counted under them, and the egress knows paths by them.
type PolicyNumbers struct {
	Index uint32            `json:"index"`
	Lists map[string]uint32 `json:"lists"`
}

// Flow is the flow id of a list that says none.
func (p PolicyNumbers) Flow(list string) uint32 {
	return p.Index*config.MaxPolicyLists + p.Lists[list] + 1
}

// Steered is what traffic a policy had. The kernel counts by the place of a list in the active
// path; here it is told whose place that was. Packets on their way in the moment of a switch-over
// can be counted for the wrong list.
type Steered struct {
	// the active one; "": none is valid
	Path  string   `json:"path"`
	Lists []string `json:"lists"` // of it, in the kernel's order
	// of the places, when they were read last
	Seen    []datapath.Traffic                      `json:"seen"`
	Counted map[string]map[string]*datapath.Traffic `json:"counted"`
}

// ActivePaths are those that run, by policy.
func (k Kept) ActivePaths() map[string]string {
	active := map[string]string{}
	for name, s := range k.Steered {
		active[name] = s.Path
	}
	return active
}

// DownSet are the lists that were found not to carry packets.
func (k Kept) DownSet() map[ListKey]bool {
	down := map[ListKey]bool{}
	for _, key := range k.ListsDown {
		down[key] = true
	}
	return down
}

// MergeNumber is what the kernel's tables know of a protected flow. A flow with other rules or
// paths is another one, but for paths that come behind those that were there.
type MergeNumber struct {
	Index    uint32            `json:"index"`
	Instance datapath.Instance `json:"instance"`
}

// Former is what an edge knows of former flows.
type Former struct {
	Secret   string                   `json:"secret"`   // 32 hexadecimal digits
	FlowHash string                   `json:"flowHash"` // "": siphash
	Until    time.Time                `json:"until"`
	Services map[string]FormerService `json:"services"` // by endpoint
}

// FormerService is what a former table was made by.
type FormerService struct {
	Buckets    int
	Continuity config.Continuity
}
