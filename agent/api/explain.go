package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/datapath/model"
)

// ExplainMax is how many frames one question may have.
const ExplainMax = 1024

// Question asks what the data plane does with packets: with those of a flow, or with given frames.
// The packets meet the running tables one after the other, and nothing that runs is disturbed.
type Question struct {
	// whose program is asked; "": the edge's where there is one
	Role Role `json:"role,omitempty"`
	// where the packets arrive; "": the first that faces clients, or the first
	Interface string  `json:"interface,omitempty"`
	Flow      *Flow   `json:"flow,omitempty"`
	Frames    []Frame `json:"frames,omitempty"`
}

// Frame is an Ethernet frame with its header, base64 in JSON.
type Frame []byte

// Explanation says what the data plane does with one packet, and why.
type Explanation struct {
	Number int `json:"number"` // of the packet in the question, from 1
	// of a flow: opening or following, at an egress by flow N; else frame
	Packet    string `json:"packet"`
	Role      Role   `json:"role"`
	Interface string `json:"interface"` // where it arrives
	Program   string `json:"program"`   // tag of the program that was run
	Flow      *Flow  `json:"flow,omitempty"`
	Bytes     int    `json:"bytes"` // of the frame as it arrives

	Verdict string `json:"verdict"`          // pass, transmit, redirect, hand_to_kernel or drop
	Outcome string `json:"outcome"`          // under which it would be counted; "" when dropped
	Reason  string `json:"reason,omitempty"` // why it is dropped
	Why     string `json:"why"`              // one sentence

	Service string `json:"service,omitempty"`
	Trace   *Trace `json:"trace,omitempty"` // edge: the flow's bucket and chain
	// edge: the backends that this packet visits, in order
	OfferedTo []string `json:"offeredTo,omitempty"`
	// edge and flowlets: the SIDs that the outer header names, in the order of travel: path, then
	// backends
	Header []HeaderSID `json:"header,omitempty"`
	// edge: the second copy of the packet, on another path; nil: it goes once
	OtherCopy *OtherCopy `json:"otherCopy,omitempty"`
	// edge: how it came to the path, where the service wants a way
	Way *Way `json:"way,omitempty"`
	// edge: what the flow cache did: hit, miss, stale, stored or why it refused
	FlowCache string `json:"flowCache,omitempty"`
	SID       *SID   `json:"sid,omitempty"` // host, strays: the local SID that it comes to
	// host: what became of the offer; strays: here, stray or returned
	Offer string `json:"offer,omitempty"`

	VRF *ExplainedVRF `json:"vrf,omitempty"` // strays: that the SID leads into

	Flowlet *FlowletChoice `json:"flowlet,omitempty"` // flowlets: the path, of which ones

	// head-end: which policy, and what its active path does
	Policy *PolicyChoice `json:"policy,omitempty"`
	// head-end: the segment lists that the packet takes; a copy on each
	Copies []ExplainedList `json:"copies,omitempty"`
	// egress: which of the copies of its packet this one is
	Copy *ExplainedCopy `json:"copy,omitempty"`

	// what nodes on the way wrote into it
	Telemetry []CarriedTelemetry `json:"telemetry,omitempty"`

	// segments that it visits next, in the order of travel
	Path    []netip.Addr `json:"path,omitempty"`
	NextHop *NextHop     `json:"nextHop,omitempty"` // transmit and redirect
	// as it leaves, in hexadecimal; not if it is dropped, or passes unchanged
	Frame string `json:"frame,omitempty"`
}

// HeaderSID is a SID in the outer header that an edge writes.
type HeaderSID struct {
	Bytes   string     `json:"bytes"` // by which it stands there, in hexadecimal: 2 or 16
	SID     netip.Addr `json:"sid"`
	Role    string     `json:"role"` // path, backend or mark, which is no SID
	Backend string     `json:"backend,omitempty"`
	Name    string     `json:"name,omitempty"` // of a path's router or link, in the topology
	Does    string     `json:"does"`           // what its node will do with the packet
}

// OtherCopy is the second copy of a packet that an edge sends over two paths.
type OtherCopy struct {
	Header []HeaderSID `json:"header"` // as that of the first
	Links  []string    `json:"links,omitempty"`
	Cost   int64       `json:"cost"` // of its path, see [Way]
}

// Way is what is wanted of the way between an edge and a backend, and what it is.
type Way struct {
	By    config.WayMetric `json:"by"` // what is least
	Avoid []string         `json:"avoid,omitempty"`
	Node  string           `json:"node"`            // that the backend is behind
	Links []string         `json:"links,omitempty"` // of the flow's path; none: routing's own way
	Paths int              `json:"paths"`           // that flows to the backend are spread over
	// the packet takes both paths, the first copy this one
	Copied bool `json:"copied,omitempty"`
	// of the flow's path, of the best one there is, and of routing's own, in the unit of what is
	// least: IGP metric, the topology's unit of delay, or 10,000 times the congestion and 1 a link
	Cost       int64   `json:"cost"`
	Least      int64   `json:"least"`
	Own        int64   `json:"own"`
	AgeSeconds float64 `json:"ageSeconds"`        // since it was computed
	Problem    string  `json:"problem,omitempty"` // why it is not as wanted
}

// PolicyChoice is how a head-end came to what it does.
type PolicyChoice struct {
	Name   string                `json:"name"`
	Rule   string                `json:"rule"` // which traffic it chooses
	Path   string                `json:"path"` // the active candidate path; "": none is valid
	Action config.SteeringAction `json:"action"`
}

// ExplainedList is what becomes of a packet, or of a copy, on a segment list.
type ExplainedList struct {
	List string `json:"list"`
	// those that it visits, in the order of travel
	Segments []netip.Addr `json:"segments,omitempty"`
	// by which the egress knows the list, if packets have numbers
	Flow    uint32   `json:"flow,omitempty"`
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason,omitempty"`
	NextHop *NextHop `json:"nextHop,omitempty"`
	Frame   string   `json:"frame,omitempty"`
}

// ExplainedCopy is what an egress reads in a numbered packet.
type ExplainedCopy struct {
	Flow uint32 `json:"flow"` // id of the path by which it came
	// of all paths of the protected flow; none: no protected flow of the SID has this path
	Flows  []uint32 `json:"flows,omitempty"`
	Number uint32   `json:"number"`
	Epoch  uint8    `json:"epoch"`
	First  bool     `json:"first"`           // it goes on; else the reason says why not
	Waits  bool     `json:"waits,omitempty"` // for its turn
}

// ExplainedVRF is a VRF to which a packet came.
type ExplainedVRF struct {
	Name   string `json:"name"`
	Backup string `json:"backup"` // the device on which strays are received
	// Left is why the packet is left to the kernel as it came, without asking for its connection:
	// continues_nothing (it opens one, or is no TCP), vrf_gone (the VRF or its backup device is not
	// there), or what is odd about it, by the name of a drop reason.
	Left string `json:"left,omitempty"`
	// of a stray: what the kernel does with it on the backup device
	Leaves *StrayWay `json:"leaves,omitempty"`
}

// StrayWay is where the kernel's routes lead a stray that the backup device receives.
type StrayWay struct {
	Fate      string `json:"fate"`                // doctor.Fate
	Interface string `json:"interface,omitempty"` // by which it leaves
	// of the route's encapsulation, in the order of travel
	Segments []netip.Addr `json:"segments,omitempty"`
}

// NextHop is where a frame is sent.
type NextHop struct {
	Interface   string `json:"interface"` // "" if it is not known
	Source      string `json:"source"`    // Ethernet address
	Destination string `json:"destination"`
}

// Explain asks what becomes of packets.
func (c *Client) Explain(ctx context.Context, q Question) ([]Explanation, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	list, err := ask[List[Explanation]](ctx,
		c, request{method: http.MethodPost, path: "/v1/explain", body: body})
	return list.Items, err
}

func (h handler) explain(r *http.Request) (any, error) {
	var q Question
	if err := ReadJSON(r, &q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	list, err := h.agent.Explain(r.Context(), q)
	return List[Explanation]{Items: notNull(list)}, err
}

func (q *Question) check() error {
	roles, text := config.ExplainedRoles()
	switch {
	case q.Role != "" && !slices.Contains(roles, string(q.Role)):
		return invalid(fmt.Sprintf("unknown role %q; write %s", q.Role, text))
	case (q.Flow == nil) == (len(q.Frames) == 0):
		return invalid("what is to be explained is not clear; give a flow or frames")
	case len(q.Frames) > ExplainMax:
		return invalid(fmt.Sprintf("%d frames are too many at once; ask for %d at most, then for "+
			"the rest", len(q.Frames), ExplainMax))
	case q.Flow != nil:
		return q.Flow.check()
	}
	return nil
}

// check refuses what can't be a flow, and completes the protocol.
func (f *Flow) check() error {
	if !f.Source.IsValid() || !f.Destination.IsValid() {
		return invalid("a flow needs source and destination; write them like [2001:db8::1]:443 " +
			"or 192.0.2.1:443")
	}
	if f.Source.Addr().Is4() != f.Destination.Addr().Is4() {
		return invalid(fmt.Sprintf("source %s and destination %s are of different families",
			f.Source, f.Destination))
	}
	f.Protocol = cmp.Or(f.Protocol, config.TCP)
	if f.Protocol != config.TCP && f.Protocol != config.UDP {
		return invalid(fmt.Sprintf("unknown protocol %q; write tcp or udp", f.Protocol))
	}
	return nil
}

// Dropped reports whether the packet ends here.
func (e Explanation) Dropped() bool { return e.Verdict == model.Drop.String() }
