package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sextant/agent/api"
)

// Steered is a flow of a network with controllable load balancing, with what its packets carry.
type Steered struct {
	Flow api.Flow `json:"flow"`
	// FlowLabel is that of IPv6 packets, where it is controllable.
	FlowLabel *uint32  `json:"flowLabel,omitempty"`
	Path      []string `json:"path"`
	// Choices are those of the routers on the path that have several next hops.
	Choices []Choice `json:"choices"`
	// Problem says why the path is not known, or not known any further.
	Problem string `json:"problem,omitempty"`
}

// Choice is what a router on a path does.
type Choice struct {
	Router   string `json:"router"`
	HopLimit uint8  `json:"hopLimit"` // with which it receives packets
	Index    int    `json:"index"`    // of the next hop, from 0; -1: not known
	NextHops int    `json:"nextHops"`
	How      string `json:"how"` // it came to it: "controlled", or why it hashes
}

// PathQuestion asks for what a flow carries on a path, for the path of a flow, or for best paths.
type PathQuestion struct {
	// Flow has source port 0 where the controller is to choose it.
	Flow      api.Flow `json:"flow"`
	FlowLabel *uint32  `json:"flowLabel,omitempty"`
	Path      []string `json:"path,omitempty"`  // of ports
	By        string   `json:"by,omitempty"`    // of best: flows or weight; "": as the file says
	Count     int      `json:"count,omitempty"` // of best; 0: one
}

// Placement asks for the path of an elephant, or for more time for it.
type Placement struct {
	Name string `json:"name"` // the caller's, by which it renews and releases the path
	// Flow has source port 0 if it has no path yet.
	Flow      api.Flow `json:"flow"`
	FlowLabel *uint32  `json:"flowLabel,omitempty"`
	By        string   `json:"by,omitempty"` // flows, weight or coloring; "": as the file says
	// Seconds for which it is held if nobody renews it; 0: a minute.
	Seconds float64 `json:"seconds,omitempty"`
}

// Elephant is a flow with the path that it was given.
type Elephant struct {
	Name string `json:"name"`
	Steered
	By      string  `json:"by"`
	Load    int     `json:"load"`    // flows on the fullest link of its path
	Seconds float64 `json:"seconds"` // for which it is held still
	// Moved says that its packets have to carry something else than the caller said.
	Moved bool `json:"moved,omitempty"`
}

// Placements is the answer to placements: those that were asked for, and others that have other
// paths now.
type Placements struct {
	Items []Elephant `json:"items"`
	Moved []Elephant `json:"moved"`
}

func (c *Controller) ports(q PathQuestion) (Steered, error) { return c.elephants.ports(q) }

func (c *Controller) recoverPath(q PathQuestion) (Steered, error) {
	s, _, err := c.elephants.fabric.follow(q.Flow, q.FlowLabel)
	return s, err
}

func (c *Controller) bestPaths(q PathQuestion) (api.List[Steered], error) {
	items, err := c.elephants.bestPaths(q)
	return api.List[Steered]{Items: items}, err
}

// asked reads a body and answers it in the event loop.
func asked[Q, A any](c *Controller, answer func(Q) (A, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var q Q
		if err := api.ReadJSON(r, &q); err != nil {
			return nil, err
		}
		return answered(r.Context(), c, q, answer)
	}
}

// answered answers a question in the event loop.
func answered[Q, A any](ctx context.Context, c *Controller, q Q, answer func(Q) (A, error)) (a A,
	err error) {
	doErr := c.do(ctx, func() {
		if err = c.noFabric(); err == nil {
			a, err = answer(q)
		}
	})
	if doErr != nil {
		return a, doErr
	}
	return a, err
}

func (c *Controller) getElephants(r *http.Request) (any, error) {
	return answered(r.Context(), c, struct{}{}, c.placed)
}

func (c *Controller) placed(struct{}) (api.List[Elephant], error) {
	return api.List[Elephant]{Items: c.elephants.list(time.Now())}, nil
}

func (c *Controller) putElephants(list api.List[Placement]) (Placements, error) {
	out, err := c.elephants.put(list.Items, time.Now())
	if err != nil {
		return out, err
	}
	for _, item := range out.Items {
		p := c.elephants.named[item.Name]
		if p.fresh {
			c.decider.Expect(c.elephants.fabric.paths.Path(p.flow), c.now())
		}
		p.fresh = false
	}
	return out, nil
}

// Released names elephants that leave.
type Released struct {
	Names []string `json:"names"`
}

func (c *Controller) deleteElephants(r Released) (Released, error) {
	for _, name := range r.Names {
		if c.elephants.named[name] == nil {
			return r, &api.Error{Code: api.NotFound,
				Message: fmt.Sprintf("no elephant is called %q", name)}
		}
	}
	slices.Sort(r.Names)
	r.Names = slices.Compact(r.Names)
	for _, name := range r.Names {
		c.elephants.release(c.elephants.named[name])
	}
	return r, nil
}
