package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"sextant/config"
)

// Policy is an SR policy of a head-end.
type Policy struct {
	Name            string       `json:"name"`
	Index           uint32       `json:"index"`    // in the kernel's tables
	Computed        bool         `json:"computed"` // the agent made it; no node file has it
	Color           uint32       `json:"color,omitempty"`
	Endpoint        netip.Addr   `json:"endpoint,omitzero"`
	DropIfInvalid   bool         `json:"dropIfInvalid"`
	MTU             int          `json:"mtuBytes"`   // of inner packets; 0: not known
	ActivePath      string       `json:"activePath"` // "": none is valid
	NumberedPackets uint64       `json:"numberedPackets"`
	Packets         uint64       `json:"packets"` // sent, copies too
	Bytes           uint64       `json:"bytes"`   // of them, without outer headers
	Rules           []string     `json:"rules"`   // that lead to it
	Paths           []PolicyPath `json:"paths"`
}

// PolicyPath is a candidate path of a policy.
type PolicyPath struct {
	Name       string                `json:"name"`
	Preference uint32                `json:"preference"`
	Action     config.SteeringAction `json:"action"`
	LeastLists int                   `json:"leastLists"`
	Active     bool                  `json:"active"`
	Why        string                `json:"why"` // it is active, or is not
	Lists      []PolicyList          `json:"lists"`
}

// PolicyList is a segment list in a path.
type PolicyList struct {
	Name        string            `json:"name"`
	Segments    []netip.Addr      `json:"segments"`
	Reduced     bool              `json:"reduced"`
	Weight      uint32            `json:"weight"`
	Redundancy  config.Redundancy `json:"redundancy"`
	Flow        uint32            `json:"flow,omitempty"`
	State       config.ListState  `json:"state"`
	Used        bool              `json:"used"` // packets take it now
	HeaderBytes int               `json:"headerBytes"`
	// of the path's packets that take it, as planned; a mirror sends all along each
	Share   float64 `json:"share"`
	Packets uint64  `json:"packets"`
	Bytes   uint64  `json:"bytes"` // without outer headers
}

// MergedFlow is a protected flow at its egress.
type MergedFlow struct {
	SID   netip.Prefix `json:"sid"`
	Flows []uint32     `json:"flows"` // ids of its paths
	// that are expected of a packet; 0: one by each path
	Copies           int               `json:"copies,omitempty"`
	Form             config.Redundancy `json:"form"`
	Mark             uint32            `json:"mark,omitempty"`
	HistoryPackets   int               `json:"historyPackets"` // so far back copies are told apart
	PassedPackets    uint64            `json:"passedPackets"`
	DuplicatePackets uint64            `json:"duplicatePackets"`
	// too far from the numbers that are remembered
	RoguePackets      uint64 `json:"roguePackets"`
	OldEpochPackets   uint64 `json:"oldEpochPackets"` // of the sender's earlier life
	OutOfOrderPackets uint64 `json:"outOfOrderPackets"`
	// that the sender has numbered, as far as one can know
	ExpectedPackets uint64 `json:"expectedPackets"`
	// of these, of which no copy has come, or not yet
	MissingPackets uint64 `json:"missingPackets"`
	Resets         uint64 `json:"resets"`
	// that passed without a look for their copies, as other processors were always ahead
	ContendedPackets uint64       `json:"contendedPackets"`
	Paths            []MergedPath `json:"paths"`
}

// MergedPath is what comes by one path.
type MergedPath struct {
	Flow         uint32 `json:"flow"`
	Packets      uint64 `json:"packets"`
	Bytes        uint64 `json:"bytes"`        // of inner packets
	FirstPackets uint64 `json:"firstPackets"` // that came before their copies
	// of those expected that did not come by this path, or not yet
	LostPackets uint64 `json:"lostPackets"`
	// SilentSeconds is the time since the latest; nil: none has come. Silent says that packets came
	// by other paths meanwhile.
	SilentSeconds *float64 `json:"silentSeconds"`
	Silent        bool     `json:"silent"`
	// One-way delays; nil: packets have no timestamps. They are as right as the clocks of the two
	// machines.
	DelaySeconds      *float64 `json:"delaySeconds"` // in the mean
	DelayLeastSeconds *float64 `json:"delayLeastSeconds"`
	DelayMostSeconds  *float64 `json:"delayMostSeconds"`
	// DelayPackets is how many had a timestamp, DelaySumSeconds what their delays add up to.
	DelayPackets    uint64  `json:"delayPackets"`
	DelaySumSeconds float64 `json:"delaySumSeconds"`
	// The same over the latest seconds; nil: nothing came.
	RecentLoss         *float64 `json:"recentLoss"` // as a share of the packets expected
	RecentDelaySeconds *float64 `json:"recentDelaySeconds"`
}

// ListSpec is what a PUT says about a segment list.
type ListSpec struct {
	State config.ListState `json:"state"`
}

// Policies returns the SR policies.
func (c *Client) Policies(ctx context.Context) ([]Policy, error) {
	return items[Policy](ctx, c, request{path: "/v1/policies"})
}

// SetList takes a segment list of a policy out of use, or back into it.
func (c *Client) SetList(ctx context.Context, policy, list string, spec ListSpec) (Changes, error) {
	path := "/v1/policies/" + url.PathEscape(policy) + "/lists/" + url.PathEscape(list)
	return c.write(ctx, request{method: http.MethodPut, path: path, put: Update.header()}, spec)
}

// Merge returns the protected flows whose egress this node is.
func (c *Client) Merge(ctx context.Context) ([]MergedFlow, error) {
	return items[MergedFlow](ctx, c, request{path: "/v1/merge"})
}

func (h handler) policies(r *http.Request) (any, error) {
	policies, err := h.agent.Policies(r.Context())
	return List[Policy]{Items: notNull(policies)}, err
}

func (h handler) merge(r *http.Request) (any, error) {
	flows, err := h.agent.Merge(r.Context())
	return List[MergedFlow]{Items: notNull(flows)}, err
}

// putList changes the node file's word where the policy is in it.
func (h handler) putList(r *http.Request) (any, error) {
	var spec ListSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	if spec.State != config.ListUp && spec.State != config.ListDown {
		return nil, invalid(fmt.Sprintf("unknown state %q of a segment list; write up or down",
			spec.State))
	}
	policy, list := r.PathValue("name"), r.PathValue("list")
	policies, err := h.agent.Policies(r.Context())
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == policy }); i >= 0 &&
		policies[i].Computed {
		changes, err := h.agent.MarkList(r.Context(), policy, list, spec.State == config.ListDown)
		return Changes{Items: notNull(changes)}, err
	}
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		return config.SetListState(n, policy, list, spec.State)
	})
}
