package controller

import (
	"net/http"
	"slices"

	"sextant/agent/api"
)

const title = "Sextant controller"

// operations are all paths of the API.
func (c *Controller) operations(metrics http.HandlerFunc) []api.Operation {
	return slices.Concat(c.flowOperations(), c.pathOperations(), []api.Operation{
		{Method: "GET", Path: "/v1/events", Needs: api.Read, Query: []api.Parameter{onlyMoved, {
			Name: "after",
			What: "the number or id of the last decision that is known; 0: tell all that is " +
				"remembered; by default decisions from now on"}},
			Summary: "Decisions as they are made", Answer: api.OfType[Decision](),
			Media: "application/jsonl", Stream: c.streamEvents},
		{Method: "GET", Path: "/metrics", Summary: "Metrics for Prometheus", Needs: api.Read,
			Media: "text/plain", Stream: metrics},
	})
}

var onlyMoved = api.Parameter{Name: "moved", What: "1: decisions that moved a flow alone"}

// flowOperations are about flows, their decisions and links.
func (c *Controller) flowOperations() []api.Operation {
	end := func(name, what string) api.Parameter {
		return api.Parameter{Name: name, What: what}
	}
	return []api.Operation{
		{Method: "GET", Path: "/v1/caller", Summary: "Who asks, and what it may do",
			Needs: api.Read, Answer: api.OfType[api.Caller](), Serve: api.AnswerCaller},
		{Method: "GET", Path: "/v1/status", Summary: "What the controller is and does",
			Needs: api.Read, Answer: api.OfType[Status](), Serve: c.getStatus},
		{Method: "GET", Path: "/v1/links", Summary: "Links and their weights", Needs: api.Read,
			Answer: api.OfType[api.List[Link]](), Serve: c.getLinks},
		{Method: "PUT", Path: "/v1/links", Summary: "Say whether a link is up", Needs: api.Operate,
			Body: api.OfType[LinkState](), Answer: api.OfType[api.List[Decision]](),
			Serve: c.putLink},
		{Method: "GET", Path: "/v1/groups", Needs: api.Read, Serve: c.getGroups,
			Summary: "Paths of which flows that begin choose at head-ends",
			Answer:  api.OfType[api.List[Group]]()},
		{Method: "GET", Path: "/v1/flows", Summary: "Flows that were looked at, and their paths",
			Needs: api.Read, Answer: api.OfType[api.List[Flow]](), Serve: c.getFlows,
			Query: []api.Parameter{end("source", "ADDRESS:PORT of one flow"),
				end("destination", "ADDRESS:PORT"), end("protocol", "tcp or udp")}},
		{Method: "GET", Path: "/v1/reroutes", Summary: "The last decisions, with their reasons",
			Needs: api.Read, Answer: api.OfType[api.List[Decision]](), Serve: c.getReroutes,
			Query: []api.Parameter{onlyMoved,
				{Name: "limit", Kind: api.Kind{Least: 1, Most: journalMemory},
					What: "decisions at most"}}},
		{Method: "POST", Path: "/v1/reports", Summary: "Take reports, and decide on them",
			Needs: api.Operate, Body: api.OfType[api.List[Report]](),
			Answer: api.OfType[api.List[Decision]](), Serve: c.postReports},
		{Method: "POST", Path: "/v1/simulate", Summary: "What a report would do now",
			Needs: api.Read, Body: api.OfType[Report](), Answer: api.OfType[Decision](),
			Serve: c.simulate},
		{Method: "PUT", Path: "/v1/pins", Summary: "Give a flow a path that reports do not change",
			Needs: api.Operate, Body: api.OfType[Pin](), Answer: api.OfType[Pin](),
			Serve: c.putPin},
		{Method: "DELETE", Path: "/v1/pins", Summary: "Let reports move a flow again",
			Needs: api.Operate, Body: api.OfType[Pin](), Answer: api.OfType[Pin](),
			Serve: c.deletePin},
	}
}

// pathOperations are about networks with controllable load balancing.
func (c *Controller) pathOperations() []api.Operation {
	return []api.Operation{
		{Method: "POST", Path: "/v1/paths/ports", Needs: api.Read,
			Summary: "The ports or the flow label that take a path",
			Body:    api.OfType[PathQuestion](), Answer: api.OfType[Steered](),
			Serve: asked(c, c.ports)},
		{Method: "POST", Path: "/v1/paths/recover", Needs: api.Read,
			Summary: "The path of a flow, and how each router came to it",
			Body:    api.OfType[PathQuestion](), Answer: api.OfType[Steered](),
			Serve: asked(c, c.recoverPath)},
		{Method: "POST", Path: "/v1/paths/best", Needs: api.Read,
			Summary: "The best paths for a flow, and what takes them",
			Body:    api.OfType[PathQuestion](), Answer: api.OfType[api.List[Steered]](),
			Serve: asked(c, c.bestPaths)},
		{Method: "GET", Path: "/v1/elephants", Summary: "Flows that were given paths",
			Needs: api.Read, Answer: api.OfType[api.List[Elephant]](), Serve: c.getElephants},
		{Method: "PUT", Path: "/v1/elephants", Needs: api.Operate,
			Summary: "Give flows paths, each by a name, or more time",
			Body:    api.OfType[api.List[Placement]](), Answer: api.OfType[Placements](),
			Serve: asked(c, c.putElephants)},
		{Method: "DELETE", Path: "/v1/elephants", Summary: "Flows that have ended",
			Needs: api.Operate, Body: api.OfType[Released](), Answer: api.OfType[Released](),
			Serve: asked(c, c.deleteElephants)},
	}
}
