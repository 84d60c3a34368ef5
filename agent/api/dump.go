package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// MapEntry is an entry of a map, in words: structures by field name, addresses and numbers
// readable.
type MapEntry struct {
	Key   any  `json:"key"`
	Value any  `json:"value"`
	CPU   *int `json:"cpu,omitempty"` // whose copy it is, of maps that have one per CPU
}

// Bounds of a dump's limit.
const (
	dumpDefault = 1000
	dumpMax     = 100_000
)

// DumpMap reads at most limit entries of a map, 0: as many as is usual. Role "" is the edge's where
// it has one of that name.
func (c *Client) DumpMap(ctx context.Context, role Role, name string,
	limit int) ([]MapEntry, error) {
	query := url.Values{"role": {string(role)}}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return items[MapEntry](ctx, c, request{path: "/v1/maps/" + url.PathEscape(name),
		query: query})
}

func (h handler) dumpMap(r *http.Request) (any, error) {
	limit, err := Limit(r, dumpDefault, dumpMax)
	if err != nil {
		return nil, err
	}
	entries, err := h.agent.DumpMap(r.Context(), Role(r.FormValue("role")), r.PathValue("name"),
		limit)
	return List[MapEntry]{Items: notNull(entries)}, err
}

// Limit is how many items a request wants at most; byDefault if it does not say.
func Limit(r *http.Request, byDefault, most int) (int, error) {
	if !r.URL.Query().Has("limit") {
		return byDefault, nil
	}
	text := r.FormValue("limit")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid(fmt.Sprintf("limit %q: write 1 to %d", text, most))
	}
	return n, nil
}
