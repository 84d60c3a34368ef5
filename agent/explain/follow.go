package explain

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/packet/srv6"
)

// Node is one whose agent can be asked what it does with packets.
type Node struct {
	Name string
	Ask  func(context.Context, api.Question) ([]api.Explanation, error)
}

// Traced is a packet of a flow from the edge to where it ends.
type Traced struct {
	Packet string      `json:"packet"` // opening or following
	Steps  []TraceStep `json:"steps"`
}

// TraceStep is what a node does with a copy of the packet.
type TraceStep struct {
	Node string     `json:"node"`         // "": not known
	Copy int        `json:"copy"`         // 1; of two copies, 1 or 2
	SID  netip.Addr `json:"sid,omitzero"` // by which the copy came; the edge has none
	Does string     `json:"does"`
	// what the node's program did with it; nil: a router, of which the header tells
	Explanation *api.Explanation `json:"explanation,omitempty"`
}

// A travelling copy is a frame as it leaves a node.
type travelling struct {
	copy  int
	frame []byte
}

// Follow asks an edge what it does with a flow, and the hosts what they do with the packets that
// leave there, until each is taken or dropped: the programs decide, on the tables that they forward
// by, and nothing is sent. A host is found by asking which has the SID.
func Follow(ctx context.Context, edge Node, hosts []Node, f api.Flow) ([]Traced, error) {
	list, err := edge.Ask(ctx, api.Question{Role: api.Edge, Flow: &f})
	if err != nil {
		return nil, err
	}
	var all []Traced
	for i := range list {
		e := &list[i]
		t := Traced{Packet: e.Packet,
			Steps: []TraceStep{{Node: edge.Name, Copy: 1, Does: e.Why, Explanation: e}}}
		copies, err := t.leave(e)
		if err == nil {
			err = t.visit(ctx, likelyFirst(hosts, e.OfferedTo), copies)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// likelyFirst puts those first that are called as the backends of the packet's chain, in its order.
func likelyFirst(hosts []Node, chain []string) []Node {
	place := func(n Node) int {
		if i := slices.Index(chain, n.Name); i >= 0 {
			return i
		}
		return len(chain)
	}
	return slices.SortedStableFunc(slices.Values(hosts),
		func(a, b Node) int { return place(a) - place(b) })
}

// leave lets the copies of a packet pass the routers on their paths.
func (t *Traced) leave(e *api.Explanation) (copies []travelling, err error) {
	if e.Dropped() || len(e.Header) == 0 {
		return nil, nil
	}
	frame, err := hex.DecodeString(e.Frame)
	if err != nil {
		return nil, fmt.Errorf("read the packet that leaves: %w", err)
	}
	headers := [][]api.HeaderSID{e.Header}
	if e.OtherCopy != nil {
		headers = append(headers, e.OtherCopy.Header)
	}
	for k, header := range headers {
		one := travelling{k + 1, slices.Clone(frame)}
		if k > 0 {
			if err := one.address(header); err != nil {
				return nil, err
			}
		}
		for _, h := range header {
			if h.Role != "path" {
				continue
			}
			name := h.Name
			if name == "" && h.SID.IsValid() {
				name = h.SID.String()
			}
			t.Steps = append(t.Steps, TraceStep{Node: name, Copy: one.copy, SID: h.SID,
				Does: h.Does})
			one.end(len(h.Bytes) == compressedDigits)
		}
		copies = append(copies, one)
	}
	return copies, nil
}

// visit lets copies come to the hosts of their chain.
func (t *Traced) visit(ctx context.Context, hosts []Node, copies []travelling) error {
	for range srv6.MaxCarrierCSIDs + 1 {
		if len(copies) == 0 {
			return nil
		}
		host, list, err := hostOf(ctx, hosts, copies)
		if err != nil {
			return err
		}
		var on []travelling
		for i, c := range copies {
			step := TraceStep{Copy: c.copy, SID: c.destination(),
				Does: "goes to a host that was not asked"}
			if list != nil {
				step.Node, step.Does, step.Explanation = host, list[i].Why, &list[i]
			}
			t.Steps = append(t.Steps, step)
			if list == nil || list[i].Dropped() || list[i].Outcome == "taken" {
				continue
			}
			frame, err := hex.DecodeString(list[i].Frame)
			if err != nil {
				return fmt.Errorf("read the packet that leaves %s: %w", host, err)
			}
			on = append(on, travelling{c.copy, frame})
		}
		copies = on
	}
	return nil
}

// hostOf finds the host to which copies go, and what it does with them; nil: none of these has the
// SID. A node that is no host, or does not answer, is none of these.
func hostOf(ctx context.Context, hosts []Node,
	copies []travelling) (string, []api.Explanation, error) {
	q := api.Question{Role: api.Host}
	for _, c := range copies {
		q.Frames = append(q.Frames, c.frame)
	}
	for _, h := range hosts {
		list, err := h.Ask(ctx, q)
		if ctx.Err() != nil {
			return "", nil, err
		}
		if err == nil && len(list) == len(copies) && list[0].SID != nil {
			return h.Name, list, nil
		}
	}
	return "", nil, nil
}

// Where things are in an Ethernet frame with an IPv6 packet.
const (
	ipv6At          = 14
	nextHeaderAt    = ipv6At + 6
	destinationAt   = ipv6At + 24
	behindIPv6      = ipv6At + 40
	protocolRouting = 43
	addressBytes    = 16
	srhFixed        = 8
	segmentsLeft    = 3

	compressedDigits = 4 // of an identifier of 16 bits
)

func (c *travelling) destination() netip.Addr {
	a, _ := netip.AddrFromSlice(c.frame[destinationAt:behindIPv6])
	return a
}

// address gives a carrier the identifiers of a header; a mark is the last one of the address.
func (c *travelling) address(header []api.HeaderSID) error {
	const block = 4
	destination := c.frame[destinationAt:behindIPv6]
	clear(destination[block:])
	at := block
	for _, h := range header {
		id, err := hex.DecodeString(h.Bytes)
		if err != nil || len(id) != 2 || at >= addressBytes {
			return fmt.Errorf("the header of a second copy has %q, which is no identifier", h.Bytes)
		}
		if h.Role == "mark" {
			at = addressBytes - 2
		}
		copy(destination[at:], id)
		at += 2
	}
	return nil
}

// end is what a router on a path does: with RFC 9800's NEXT-C-SID the next identifier of the
// address, unless there is none; else the next segment (RFC 8986 section 4.1).
func (c *travelling) end(compressed bool) {
	next, id := srv6.Shift(c.destination())
	if compressed && id != 0 {
		copy(c.frame[destinationAt:], next.AsSlice())
		return
	}
	if c.frame[nextHeaderAt] != protocolRouting || len(c.frame) < behindIPv6+srhFixed {
		return
	}
	left := int(c.frame[behindIPv6+segmentsLeft]) - 1
	at := behindIPv6 + srhFixed + addressBytes*left
	if left < 0 || len(c.frame) < at+addressBytes {
		return
	}
	c.frame[behindIPv6+segmentsLeft] = byte(left)
	copy(c.frame[destinationAt:], c.frame[at:at+addressBytes])
}
