package api

import (
	"context"
	"net/http"
	"net/netip"
)

// FlowPath is a flow with a path of its own, in front of the rules of a head-end.
type FlowPath struct {
	Flow     Flow         `json:"flow"`
	Segments []netip.Addr `json:"segments"` // in the order in which they are visited
	// Seconds is for how long, or, in a list, how long still.
	Seconds float64 `json:"seconds"`
}

// FlowPaths returns the flows that have paths of their own.
func (c *Client) FlowPaths(ctx context.Context) ([]FlowPath, error) {
	return items[FlowPath](ctx, c, request{path: "/v1/flows"})
}

// SetFlowPath gives a flow a path, or another one.
func (c *Client) SetFlowPath(ctx context.Context, p FlowPath) error {
	_, err := Ask[FlowPath](ctx, c, http.MethodPut, "/v1/flows", nil, p)
	return err
}

// RemoveFlowPath lets the rules choose for a flow again.
func (c *Client) RemoveFlowPath(ctx context.Context, f Flow) error {
	_, err := Ask[Flow](ctx, c, http.MethodDelete, "/v1/flows", nil, f)
	return err
}

func (h handler) flows(r *http.Request) (any, error) {
	flows, err := h.agent.FlowPaths(r.Context())
	return List[FlowPath]{Items: notNull(flows)}, err
}

func (h handler) putFlow(r *http.Request) (any, error) {
	var p FlowPath
	if err := ReadJSON(r, &p); err != nil {
		return nil, err
	}
	return p, h.agent.SetFlowPath(r.Context(), p)
}

func (h handler) deleteFlow(r *http.Request) (any, error) {
	var f Flow
	if err := ReadJSON(r, &f); err != nil {
		return nil, err
	}
	return f, h.agent.RemoveFlowPath(r.Context(), f)
}
