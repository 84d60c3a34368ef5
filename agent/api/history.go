package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sextant/config"
)

// Applied is a configuration that an agent ran, and what it changed.
type Applied struct {
	Number int       `json:"number"` // counts from 1 for as long as the state directory lives
	Time   time.Time `json:"time"`
	By     string    `json:"by"`     // the user of the socket, or the label of the token
	Action string    `json:"action"` // start, apply, change, rollback
	// Changes against the one before, as lines of a diff; the first ones only, if there are many.
	Changes     []string `json:"changes"`
	ChangeCount int      `json:"changeCount"`
	Current     bool     `json:"current"` // it is what runs
	// ConfirmUntil is set while the configuration is undone at that time unless it is confirmed.
	ConfirmUntil *time.Time `json:"confirmUntil,omitempty"`
}

// Historian is what the handler needs of the agent's past.
type Historian interface {
	// History returns the configurations that ran, the latest last.
	History(context.Context) ([]Applied, error)
	// PastConfig returns the configuration of a number, which the caller does not change.
	PastConfig(ctx context.Context, number int) (*config.Node, error)
	// Rollback makes the configuration of a number the running one, 0: the one before it. If the
	// running one waits for a confirmation, it is undone.
	Rollback(ctx context.Context, number int, dryRun bool) ([]config.Change, error)
	// Confirm keeps a configuration that was applied on condition that it is confirmed.
	Confirm(context.Context) error
}

// Bounds of the time for a confirmation, in seconds.
const (
	minConfirm = 1
	maxConfirm = 24 * 60 * 60
)

func confirmOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("confirmSeconds")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < minConfirm || n > maxConfirm {
		return 0, invalid(fmt.Sprintf("confirmSeconds %q is out of range; write %d to %d", text,
			minConfirm, maxConfirm))
	}
	return time.Duration(n) * time.Second, nil
}

func (h handler) history(r *http.Request) (any, error) {
	list, err := h.agent.History(r.Context())
	return List[Applied]{Items: notNull(list)}, err
}

func (h handler) confirm(r *http.Request) (any, error) {
	return struct{}{}, h.agent.Confirm(r.Context())
}

func (h handler) rollback(r *http.Request) (any, error) {
	number, err := numberOf(r.URL.Query().Get("number"))
	if err != nil {
		return nil, err
	}
	dryRun, err := FlagOf(r, "dryRun")
	if err != nil {
		return nil, err
	}
	changes, err := h.agent.Rollback(r.Context(), number, dryRun)
	return Changes{DryRun: dryRun, Items: notNull(changes)}, err
}

// pastConfig answers with a node file without its secrets.
func (h handler) pastConfig(w http.ResponseWriter, r *http.Request) {
	number, err := numberOf(r.PathValue("number"))
	if err != nil {
		writeError(w, err)
		return
	}
	node, err := h.agent.PastConfig(r.Context(), number)
	writeNode(w, r, node, err)
}

// maxNumber is of more configurations than a state directory has in its life.
const maxNumber = math.MaxInt32

func numberOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > maxNumber {
		return 0, invalid(fmt.Sprintf("%q is no number of a configuration; write one that "+
			"/v1/history has", text))
	}
	return number, nil
}

// History returns the configurations that ran, the latest last.
func (c *Client) History(ctx context.Context) ([]Applied, error) {
	return items[Applied](ctx, c, request{path: "/v1/history"})
}

// PastConfig returns a configuration that ran, as a node file in YAML without its secrets.
func (c *Client) PastConfig(ctx context.Context, number int) ([]byte, error) {
	return c.text(ctx, request{path: fmt.Sprintf("/v1/history/%d", number)})
}

// Confirm keeps what was applied on condition that it is confirmed.
func (c *Client) Confirm(ctx context.Context) error {
	_, err := ask[struct{}](ctx, c, request{method: http.MethodPost, path: "/v1/confirm"})
	return err
}

// Rollback makes the configuration of a number the running one; 0: the one before it. With dryRun
// it only checks.
func (c *Client) Rollback(ctx context.Context, number int, dryRun bool) (Changes, error) {
	query := flag("dryRun", dryRun)
	if number != 0 {
		query.Set("number", strconv.Itoa(number))
	}
	return ask[Changes](ctx, c, request{method: http.MethodPost, path: "/v1/rollback",
		query: query})
}

// ApplyUnconfirmed is Apply of a configuration that is undone unless it is confirmed in time.
func (c *Client) ApplyUnconfirmed(ctx context.Context, file string, text []byte,
	within time.Duration) (Changes, error) {
	return ask[Changes](ctx, c, request{method: http.MethodPost, path: "/v1/apply",
		query: url.Values{"file": {file},
			"confirmSeconds": {strconv.Itoa(int(within.Seconds()))}}, body: text})
}
