package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"sextant/config"
	"sextant/packet/flow"
)

// Traffic chooses packets; what is left out matches any.
type Traffic struct {
	Source           string `json:"source,omitempty"`      // a prefix
	Destination      string `json:"destination,omitempty"` // a prefix
	Protocol         string `json:"protocol,omitempty"`    // a name like udp, or a number
	SourcePorts      string `json:"sourcePorts,omitempty"` // like 80, or 5000-5010
	DestinationPorts string `json:"destinationPorts,omitempty"`
	DSCP             *int   `json:"dscp,omitempty"`
}

// ProtectionSpec is what a protection promises. Zero values stand for defaults, but for To, Egress
// and Match.
type ProtectionSpec struct {
	// the node's own name in the topology, if it is given
	From          string         `json:"from,omitempty"`
	To            string         `json:"to"`
	Egress        netip.Addr     `json:"egress"`
	ProbeSID      netip.Addr     `json:"probeSID,omitzero"`
	Agent         netip.AddrPort `json:"agent,omitzero"` // the egress's api.metrics
	Match         []Traffic      `json:"match"`
	Copies        int            `json:"copies,omitempty"`
	Spares        int            `json:"spares,omitempty"`
	Disjoint      string         `json:"disjoint,omitempty"`
	SIDs          int            `json:"sids,omitempty"`
	Model         string         `json:"model,omitempty"`
	RateKbps      int            `json:"rateKbps,omitempty"`
	Redundancy    string         `json:"redundancy,omitempty"`
	Flow          int            `json:"flow,omitempty"`
	DropIfInvalid bool           `json:"dropIfInvalid,omitempty"`
}

// ProtectionState is how a protection fares.
type ProtectionState string

// The states of a protection.
const (
	// each copy has a path that is not known to be broken
	Protected ProtectionState = "protected"
	// fewer copies than are wanted travel, or are merged as far as the egress has said
	Degraded    ProtectionState = "degraded"
	Unprotected ProtectionState = "unprotected" // no path is up, or the egress drops all copies
	// probes of all paths are lost: their way back is suspected, and nothing is switched off
	Suspended ProtectionState = "suspended"
	Planning  ProtectionState = "planning" // no paths have been computed yet
)

// Protection is a protection as it runs.
type Protection struct {
	Name     string          `json:"name"`
	From     string          `json:"from"`
	To       string          `json:"to"`
	Egress   netip.Addr      `json:"egress"`
	Match    string          `json:"match"`
	Copies   int             `json:"copies"`
	Spares   int             `json:"spares"`
	Disjoint string          `json:"disjoint"`
	SIDs     int             `json:"sids"`
	Model    string          `json:"model"`
	RateKbps int             `json:"rateKbps"`
	Flows    []int           `json:"flows"` // by which the egress has to know the paths
	State    ProtectionState `json:"state"`
	// why it is not protected, or has fewer spares than are wanted; "": it has all
	Reason  string    `json:"reason"`
	Proof   string    `json:"proof"` // what is proven of the paths
	Changed time.Time `json:"changed"`
	// Replacements is how often other paths came to carry since the agent began.
	Replacements uint64          `json:"replacements"`
	Replaced     *Replacement    `json:"replaced"` // the latest of them; nil: there was none
	Paths        []ProtectedPath `json:"paths"`
}

// Replacement is how other paths came to carry, step by step.
type Replacement struct {
	Because string `json:"because"` // what was noticed, like "path1 is silent"
	// when the last probe came back over the path that failed; the zero value: not known
	Heard   time.Time `json:"heard,omitzero"`
	Noticed time.Time `json:"noticed"` // when that was known
	Decided time.Time `json:"decided"` // when it was known which paths carry instead
	// when no processor read the table before any more: packets take the new one earlier
	Installed time.Time `json:"installed"`
}

// PathRole is what a path of a protection is for now.
type PathRole string

// The roles of paths.
const (
	Carries PathRole = "carries"
	Spare   PathRole = "spare" // takes over when one that carries fails
	// a replacement that has not answered yet, or a silent path that is sent copies again
	Trial   PathRole = "trial"
	Broken  PathRole = "down"    // of the plan, but silent, or over a link that is down
	Watched PathRole = "watched" // no more of the plan; it is looked at until it answers
)

// ProtectedPath is a way of a protection's packets.
type ProtectedPath struct {
	List      string       `json:"list"` // its name in the policy
	Role      PathRole     `json:"role"`
	Links     []string     `json:"links"`
	Segments  []string     `json:"segments"` // what the SIDs say
	SIDs      []netip.Addr `json:"sids"`     // as they are in the header
	Flow      int          `json:"flow"`
	Delay     int64        `json:"delay"`     // by the topology
	DelayUnit string       `json:"delayUnit"` // of it; none: not known
	Probes    string       `json:"probes"`    // answers, silent or unknown
	Fault     string       `json:"fault"`     // why the network can't carry it
	// NextTrial is when a silent path that is not probed is tried again, or as soon after as its
	// links have room; nil: it is not put aside.
	NextTrial    *time.Time `json:"nextTrial"`
	TrialsInVain int        `json:"trialsInVain"` // in a row
	// of probes, over the path and back; 0: not measured
	RTTMs   float64 `json:"rttMs"`
	Loss    float64 `json:"loss"`    // share of probes that did not come back
	Packets uint64  `json:"packets"` // that the head-end sent over it
	// What the egress's agent says of copies that came by this path in the latest seconds; nil: it
	// was not asked, none came, or paths changed meanwhile.
	CopyLoss    *float64 `json:"copyLoss"`    // share that did not come, by their numbers
	CopyDelayMs *float64 `json:"copyDelayMs"` // one-way, as right as both machines' clocks
}

// Topology is the network that protections are computed on.
type Topology struct {
	Source   string `json:"source"`
	Problem  string `json:"problem"`  // why it can't be read anew; "": it can
	NodeLink string `json:"nodeLink"` // the network as networkx's node-link JSON
}

// Config makes the spec a protection of the configuration.
func (s ProtectionSpec) Config(name string) (config.Protection, error) {
	p := config.NewProtection(name, s.To, s.Egress)
	p.Agent = s.Agent
	p.ProbeSID, p.Spares, p.RateKbps, p.Flow, p.DropIfInvalid = s.ProbeSID, s.Spares, s.RateKbps,
		s.Flow, s.DropIfInvalid
	p.Copies, p.SIDs = cmp.Or(s.Copies, p.Copies), cmp.Or(s.SIDs, p.SIDs)
	p.Disjoint, p.Model = cmp.Or(s.Disjoint, p.Disjoint), cmp.Or(s.Model, p.Model)
	p.Redundancy = cmp.Or(config.Redundancy(s.Redundancy), p.Redundancy)
	for _, m := range s.Match {
		rule, err := m.rule()
		if err != nil {
			return p, err
		}
		p.Matches = append(p.Matches, rule)
	}
	return p, nil
}

func (t Traffic) rule() (config.SteeringRule, error) {
	r := config.SteeringRule{DSCP: config.AnyDSCP}
	if t.DSCP != nil {
		r.DSCP = *t.DSCP
	}
	return r, cmp.Or(
		readInto(&r.Source, t.Source, config.ParseAnyPrefix),
		readInto(&r.Destination, t.Destination, config.ParseAnyPrefix),
		readInto(&r.Protocol, t.Protocol, config.ParseIPProtocol),
		readInto(&r.SourcePorts, t.SourcePorts, config.ParsePortRange),
		readInto(&r.DestinationPorts, t.DestinationPorts, config.ParsePortRange))
}

// readInto reads a text that is not empty.
func readInto[T any](into *T, text string, parse func(string) (T, error)) (err error) {
	if text != "" {
		*into, err = parse(text)
	}
	return err
}

func (h handler) protections(r *http.Request) (any, error) {
	protections, err := h.agent.Protections(r.Context())
	return List[Protection]{Items: notNull(protections)}, err
}

func (h handler) putProtection(r *http.Request) (any, error) {
	var spec ProtectionSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	dryRun, err := FlagOf(r, "dryRun")
	if err != nil {
		return nil, err
	}
	return h.agent.Protect(r.Context(), r.PathValue("name"), spec, dryRun)
}

func (h handler) deleteProtection(r *http.Request) (any, error) {
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		return config.DeleteProtection(n, r.PathValue("name"))
	})
}

func (h handler) topology(r *http.Request) (any, error) { return h.agent.Topology(r.Context()) }

// MergeHandler tells head-ends what came by each path of protected traffic to this egress. It only
// reads.
func MergeHandler(agent Agent) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flows, err := agent.Merge(r.Context())
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, List[MergedFlow]{Items: notNull(flows)})
	})
}

// AskEgress asks an egress's agent what came by each path. Both prove that they know the cluster's
// secret.
func AskEgress(ctx context.Context, secret flow.Secret,
	agent netip.AddrPort) ([]MergedFlow, error) {
	list, err := askAgent[List[MergedFlow]](ctx, secret, agent, "/v1/merge")
	if err != nil {
		return nil, &Error{Conflict, fmt.Sprintf("ask the egress's agent at %s for its paths: %v; "+
			"see that it runs with api.metrics at this address", agent, err)}
	}
	return list.Items, nil
}

func protectionPath(name string) string { return "/v1/protections/" + url.PathEscape(name) }

// Protections returns the protections of a head-end.
func (c *Client) Protections(ctx context.Context) ([]Protection, error) {
	return items[Protection](ctx, c, request{path: "/v1/protections"})
}

// Protection returns one of them.
func (c *Client) Protection(ctx context.Context, name string) (Protection, error) {
	protections, err := c.Protections(ctx)
	if err != nil {
		return Protection{}, err
	}
	for _, p := range protections {
		if p.Name == name {
			return p, nil
		}
	}
	return Protection{}, &Error{NotFound,
		fmt.Sprintf("there is no protection %q; see: sextant protect list", name)}
}

// Protect adds a protection. With dryRun it only says what it would be.
func (c *Client) Protect(ctx context.Context, name string, spec ProtectionSpec,
	dryRun bool) (Protection, error) {
	body, err := json.Marshal(spec)
	if err != nil {
		return Protection{}, err
	}
	return ask[Protection](ctx, c, request{method: http.MethodPut, path: protectionPath(name),
		query: flag("dryRun", dryRun), body: body})
}

// DeleteProtection ends a protection.
func (c *Client) DeleteProtection(ctx context.Context, name string) (Changes, error) {
	return ask[Changes](ctx, c, request{method: http.MethodDelete, path: protectionPath(name)})
}

// Topology returns the network that protections are computed on.
func (c *Client) Topology(ctx context.Context) (Topology, error) {
	return ask[Topology](ctx, c, request{path: "/v1/topology"})
}
