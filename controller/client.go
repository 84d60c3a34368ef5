package controller

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"sextant/agent/api"
)

// Client talks to a controller. A call ends with its context; the client has no time limit.
type Client struct {
	socket string // "": it is elsewhere
	http   *api.Client
}

// NewClient makes a client for the controller behind a Unix socket. It connects when it is used.
func NewClient(socket string) *Client {
	return &Client{socket, api.NewClientOf("controller", "sextant controller -f FILE", socket)}
}

// ClientBy makes a client that calls the controller by another one.
func ClientBy(c *api.Client) *Client { return &Client{http: c} }

// Status returns what the controller is and does.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return api.Ask[Status](ctx, c.http, http.MethodGet, "/v1/status", nil, nil)
}

// Links returns all links with their weights.
func (c *Client) Links(ctx context.Context) ([]Link, error) {
	return items[Link](ctx, c, "/v1/links", nil)
}

// Groups returns the paths of which flows that begin choose at head-ends.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return items[Group](ctx, c, "/v1/groups", nil)
}

// SetLink says that the links from one router to another are up or down, and returns the decisions
// on flows that were on them.
func (c *Client) SetLink(ctx context.Context, s LinkState) ([]Decision, error) {
	list, err := api.Ask[api.List[Decision]](ctx, c.http, http.MethodPut, "/v1/links", nil, s)
	return list.Items, err
}

// Flows returns flows that were looked at, 10,000 at most, in the order of their addresses.
func (c *Client) Flows(ctx context.Context) ([]Flow, error) {
	return items[Flow](ctx, c, "/v1/flows", nil)
}

// Flow returns one flow; the error has api.NotFound if it was not looked at.
func (c *Client) Flow(ctx context.Context, f api.Flow) (Flow, error) {
	list, err := items[Flow](ctx, c, "/v1/flows", url.Values{"source": {f.Source.String()},
		"destination": {f.Destination.String()}, "protocol": {string(f.Protocol)}})
	if err != nil || len(list) == 0 {
		return Flow{}, err
	}
	return list[0], nil
}

// Reroutes returns up to limit of the last decisions, the latest last: all, or those that moved a
// flow.
func (c *Client) Reroutes(ctx context.Context, limit int, moved bool) ([]Decision, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if moved {
		query.Set("moved", "1")
	}
	return items[Decision](ctx, c, "/v1/reroutes", query)
}

// Report hands in reports that came together, and returns the decisions that they ask for.
func (c *Client) Report(ctx context.Context, reports []Report) ([]Decision, error) {
	list, err := api.Ask[api.List[Decision]](ctx, c.http, http.MethodPost, "/v1/reports", nil,
		api.List[Report]{Items: reports})
	return list.Items, err
}

// Simulate returns what would be decided now on a flow that paused.
func (c *Client) Simulate(ctx context.Context, r Report) (Decision, error) {
	return api.Ask[Decision](ctx, c.http, http.MethodPost, "/v1/simulate", nil, r)
}

// Pin gives a flow a path that no report changes.
func (c *Client) Pin(ctx context.Context, p Pin) error {
	_, err := api.Ask[Pin](ctx, c.http, http.MethodPut, "/v1/pins", nil, p)
	return err
}

// Unpin lets reports move a flow again.
func (c *Client) Unpin(ctx context.Context, f api.Flow) error {
	_, err := api.Ask[Pin](ctx, c.http, http.MethodDelete, "/v1/pins", nil, Pin{Flow: f})
	return err
}

// Ports returns what packets of a flow carry on a path.
func (c *Client) Ports(ctx context.Context, q PathQuestion) (Steered, error) {
	return api.Ask[Steered](ctx, c.http, http.MethodPost, "/v1/paths/ports", nil, q)
}

// Recover returns the path that a flow takes by what its packets carry.
func (c *Client) Recover(ctx context.Context, q PathQuestion) (Steered, error) {
	return api.Ask[Steered](ctx, c.http, http.MethodPost, "/v1/paths/recover", nil, q)
}

// Best returns the best paths for a flow, one for each of its subflows. They are not placed.
func (c *Client) Best(ctx context.Context, q PathQuestion) ([]Steered, error) {
	list, err := api.Ask[api.List[Steered]](ctx, c.http, http.MethodPost, "/v1/paths/best", nil, q)
	return list.Items, err
}

// Elephants returns the flows that have paths, by name.
func (c *Client) Elephants(ctx context.Context) ([]Elephant, error) {
	return items[Elephant](ctx, c, "/v1/elephants", nil)
}

// Place gives flows that come together their paths, or more time.
func (c *Client) Place(ctx context.Context, list []Placement) (Placements, error) {
	return api.Ask[Placements](ctx, c.http, http.MethodPut, "/v1/elephants", nil,
		api.List[Placement]{Items: list})
}

// Release takes the paths of elephants back.
func (c *Client) Release(ctx context.Context, names ...string) error {
	_, err := api.Ask[Released](ctx, c.http, http.MethodDelete, "/v1/elephants", nil,
		Released{Names: names})
	return err
}

func items[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	list, err := api.Ask[api.List[T]](ctx, c.http, http.MethodGet, path, query, nil)
	return list.Items, err
}
