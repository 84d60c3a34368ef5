package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/schedulerpb"
	"sextant/packet/flow"
	"sextant/te/reroute"
)

// handler serves the API.
func (c *Controller) handler(metrics http.Handler) http.Handler {
	mux := api.Serve("controller", title, c.operations(metrics.ServeHTTP))
	mux.Handle("POST /"+schedulerpb.Scheduler_ServiceDesc.ServiceName+"/", c.schedulerServer())
	return mux
}

// streamEvents tells decisions as they are made; with moved=1 those that moved a flow.
func (c *Controller) streamEvents(w http.ResponseWriter, r *http.Request) {
	wanted, err := wantedBy(r)
	if err != nil {
		api.Refuse(w, err)
		return
	}
	api.EventSource{Started: c.begun, Since: func(ctx context.Context, after uint64) (
		events []api.Numbered, last uint64, err error) {
		last = after
		err = c.do(ctx, func() {
			for _, d := range c.journal.since(after) {
				last = d.Number
				if wanted(&d) {
					events = append(events, api.Numbered{Number: d.Number, Value: d})
				}
			}
		})
		return events, last, err
	}}.Stream(w, r)
}

// wantedBy tells which decisions a request is for.
func wantedBy(r *http.Request) (wanted func(*Decision) bool, err error) {
	only, err := api.FlagOf(r, onlyMoved.Name)
	moved := reroute.Moved.String()
	return func(d *Decision) bool { return !only || d.Verdict == moved }, err
}

// inLoop runs a question in the event loop.
func inLoop[T any](c *Controller, r *http.Request, ask func() (T, error)) (answer any, err error) {
	if doErr := c.do(r.Context(), func() { answer, err = ask() }); doErr != nil {
		return nil, doErr
	}
	return answer, err
}

func (c *Controller) getStatus(r *http.Request) (any, error) {
	return inLoop(c, r, func() (Status, error) { return c.status(), nil })
}

func (c *Controller) getLinks(r *http.Request) (any, error) {
	return inLoop(c, r, func() (api.List[Link], error) {
		list := api.List[Link]{Items: []Link{}}
		for _, l := range c.decider.Links(c.now()) {
			e := c.graph.Edge(l.Edge)
			item := Link{From: c.graph.Node(e.From).Name, To: c.graph.Node(e.To).Name,
				Number: int(l.Edge), Up: !c.down[l.Edge], QueueSize: c.names.sizes[l.Edge],
				Interface: c.names.interfaces[l.Edge]}
			weight := c.names.candidate(reroute.Candidate{Weight: l.Weight})
			item.Weight, item.Noise, item.Occupancy = weight.Weight, weight.Noise, l.Weight.Peak
			if l.Seen {
				item.AgeMs = new(float64(l.Age.Microseconds()) / 1000)
			}
			list.Items = append(list.Items, item)
		}
		return list, nil
	})
}

func (c *Controller) getGroups(r *http.Request) (any, error) {
	return inLoop(c, r, func() (api.List[Group], error) {
		return api.List[Group]{Items: c.groups()}, nil
	})
}

func (c *Controller) putLink(r *http.Request) (any, error) {
	var s LinkState
	if err := api.ReadJSON(r, &s); err != nil {
		return nil, err
	}
	return inLoop(c, r, func() (api.List[Decision], error) {
		decisions, err := c.setLink(s)
		return api.List[Decision]{Items: decisions}, err
	})
}

func (c *Controller) getFlows(r *http.Request) (any, error) {
	if text := r.FormValue("source"); text != "" {
		return c.getFlow(r)
	}
	return inLoop(c, r, func() (api.List[Flow], error) {
		list := api.List[Flow]{Items: []Flow{}}
		for t, f := range c.decider.Flows() {
			if len(list.Items) == maxFlows {
				break
			}
			list.Items = append(list.Items, c.flow(t, f))
		}
		slices.SortFunc(list.Items, func(a, b Flow) int { return compare(a.Flow, b.Flow) })
		return list, nil
	})
}

// maxFlows bounds a list of flows: of more, some are shown.
const maxFlows = 10_000

// getFlow answers with one flow.
func (c *Controller) getFlow(r *http.Request) (any, error) {
	var f api.Flow
	err := errors.Join(f.Source.UnmarshalText([]byte(r.FormValue("source"))),
		f.Destination.UnmarshalText([]byte(r.FormValue("destination"))))
	if err != nil {
		return nil, &api.Error{Code: api.Invalid, Message: err.Error()}
	}
	f.Protocol = config.Protocol(r.FormValue("protocol"))
	t, err := tupleOf(f)
	if err != nil {
		return nil, err
	}
	return inLoop(c, r, func() (api.List[Flow], error) {
		known, ok := c.decider.Flow(t)
		if !ok {
			return api.List[Flow]{}, &api.Error{Code: api.NotFound,
				Message: "no report has asked for another path of this flow"}
		}
		return api.List[Flow]{Items: []Flow{c.flow(t, known)}}, nil
	})
}

func (c *Controller) flow(t flow.Tuple, f reroute.Flow) Flow {
	out := Flow{Flow: flowOf(t), From: c.graph.Node(f.From).Name, To: c.graph.Node(f.To).Name,
		Class: f.Class, Path: c.names.routers(f.Path), Moves: f.Moves, Pinned: f.Pinned,
		SeenAt: c.begun.Add(f.Seen)}
	if g := c.gifts.flows[t]; g != nil {
		out.State, out.Problem, out.Segments = g.state, g.reason, g.segments
		if g.took > 0 {
			out.AppliedMs = new(float64(g.took.Microseconds()) / 1000)
		}
	}
	return out
}

func compare(a, b api.Flow) int {
	if d := a.Source.Compare(b.Source); d != 0 {
		return d
	}
	return a.Destination.Compare(b.Destination)
}

// defaultReroutes is how many decisions are answered with if the request does not say.
const defaultReroutes = 100

func (c *Controller) getReroutes(r *http.Request) (any, error) {
	limit, err := api.Limit(r, defaultReroutes, journalMemory)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedBy(r)
	if err != nil {
		return nil, err
	}
	return inLoop(c, r, func() (api.List[Decision], error) {
		return api.List[Decision]{Items: c.journal.recent(limit, wanted)}, nil
	})
}

func (c *Controller) postReports(r *http.Request) (any, error) {
	var list api.List[Report]
	if err := api.ReadJSON(r, &list); err != nil {
		return nil, err
	}
	if list.Items == nil {
		return nil, &api.Error{Code: api.Invalid,
			Message: "there are no items; send the reports in it"}
	}
	return inLoop(c, r, func() (api.List[Decision], error) {
		var reports []*reroute.Report
		for i, item := range list.Items {
			report, err := c.names.report(item, c.now())
			if err != nil {
				c.refused += uint64(len(list.Items))
				return api.List[Decision]{}, numbered(i, err)
			}
			reports = append(reports, report)
		}
		return api.List[Decision]{Items: c.take(reports)}, nil
	})
}

// numbered says which report an error is about.
func numbered(i int, err error) error {
	e, ok := err.(*api.Error)
	if !ok {
		return err
	}
	return &api.Error{Code: e.Code, Message: fmt.Sprintf("report %d: %s", i+1, e.Message)}
}

func (c *Controller) simulate(r *http.Request) (any, error) {
	var item Report
	if err := api.ReadJSON(r, &item); err != nil {
		return nil, err
	}
	item.Pause = true
	return inLoop(c, r, func() (Decision, error) {
		report, err := c.names.report(item, c.now())
		if err != nil {
			return Decision{}, err
		}
		d := c.decider.Simulate(report)
		return c.names.decision(d, c.begun.Add(report.At)), nil
	})
}

func (c *Controller) putPin(r *http.Request) (any, error) { return c.pins(r, c.pin) }

func (c *Controller) deletePin(r *http.Request) (any, error) { return c.pins(r, c.unpin) }

func (c *Controller) pins(r *http.Request, change func(Pin) error) (any, error) {
	var p Pin
	if err := api.ReadJSON(r, &p); err != nil {
		return nil, err
	}
	return inLoop(c, r, func() (Pin, error) { return p, change(p) })
}
