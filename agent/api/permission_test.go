package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sextant/config"
)

// stopper is an agent that must not be reached: its methods panic, as there are none.
type stopper struct{ Agent }

func (stopper) Metrics() http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("asked") })
}

// asked sends a request of a caller with a permission, "" on the socket, and returns the status; 0
// if the agent was asked.
func asked(t *testing.T, h http.Handler, method, path, body string, may Permission) (status int) {
	t.Helper()
	defer func() {
		if recover() != nil {
			status = 0
		}
	}()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if may != "" {
		r = r.WithContext(WithAccess(r.Context(), NewAccess(may)))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// Every path of the API refuses callers who have less than what it is said to need, before it asks
// the agent, and lets the others through.
func TestPermissionsHold(t *testing.T) {
	h := NewHandler(stopper{})
	named := strings.NewReplacer("{name}", "web", "{backend}", "web1", "{list}", "1",
		"{number}", "1")
	for _, e := range endpoints(handler{}) {
		for _, may := range []Permission{Read, Operate, Admin, "", "king"} {
			refused := may != "" && !may.Includes(e.Needs)
			status := asked(t, h, e.Method, named.Replace(e.Path), "", may)
			if got := status == http.StatusForbidden; got != refused {
				t.Errorf("%s %s by %q: status %d, refused %v, not %v", e.Method, e.Path, may,
					status, got, refused)
			}
		}
	}
}

// A request can do with less than its caller has, and never with more.
func TestRoleOfARequest(t *testing.T) {
	h := NewHandler(stopper{})
	for _, c := range []struct {
		may, wanted, is Permission
	}{
		{"", Read, Read}, {"", Operate, Operate}, {"", Admin, Admin}, {Admin, Read, Read},
		{Operate, Read, Read}, {Read, Admin, Read}, {Operate, Admin, Operate},
	} {
		wants := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set(RoleHeader, string(c.wanted))
			h.ServeHTTP(w, r)
		})
		for _, e := range endpoints(handler{}) {
			path := strings.NewReplacer("{name}", "web", "{backend}", "web1", "{list}", "1",
				"{number}", "1").Replace(e.Path)
			got := asked(t, wants, e.Method, path, "", c.may) == http.StatusForbidden
			if want := !c.is.Includes(e.Needs); got != want {
				t.Errorf("%s %s by %q as %q: refused %v, not %v", e.Method, path, c.may, c.wanted,
					got, want)
			}
		}
	}
	king := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(RoleHeader, "king")
		h.ServeHTTP(w, r)
	})
	if got := asked(t, king, "GET", "/v1/status", "", ""); got != http.StatusBadRequest {
		t.Errorf("as king: %d", got)
	}
}

// node is an agent with a configuration alone.
type node struct {
	Agent
	node *config.Node
}

// Some requests need more than their path says: to see secrets, and to make another server of a
// backend.
func TestPermissionsOfRequests(t *testing.T) {
	sid := netip.MustParseAddr("fcbb:bb00:1::")
	n := &config.Node{Name: "e", Edge: &config.Edge{Services: []config.Service{{
		Name: "web", Backends: []config.Backend{{Name: "web1", SID: sid}}}}}}
	h := handler{agent: node{node: n}}
	for _, c := range []struct {
		body string
		may  Permission
		want bool
	}{
		{`{"sid":"fcbb:bb00:2::"}`, Operate, false},
		{`{"agent":"[fd00::1]:9477"}`, Operate, false},
		{`{"sid":"fcbb:bb00:2::"}`, Admin, true},
	} {
		put := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := h.putBackend(r); err != nil {
				writeError(w, err)
			}
		})
		if got := asked(t, put, "PUT", "/", c.body, c.may) != http.StatusForbidden; got != c.want {
			t.Errorf("%s by %s: allowed %v", c.body, c.may, got)
		}
	}
	show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeNode(w, r, n, nil)
	})
	for _, c := range []struct {
		path string
		may  Permission
		want bool
	}{{"/", Read, true}, {"/?secrets=1", Operate, false}, {"/?secrets=1", Admin, true},
		{"/?secrets=1", "", true}} {
		if got := asked(t, show, "GET", c.path, "", c.may) != http.StatusForbidden; got != c.want {
			t.Errorf("GET %s by %q: allowed %v", c.path, c.may, got)
		}
	}
}

// A stream is server-sent events for those who accept them, and lines of JSON for the others.
func TestStreams(t *testing.T) {
	for accept, want := range map[string]string{
		"":                              "{\"a\":\"b\\nc\"}\n",
		"text/event-stream":             "data: {\"a\":\"b\\nc\"}\n\n",
		"application/json":              "{\"a\":\"b\\nc\"}\n",
		"text/event-stream, text/plain": "data: {\"a\":\"b\\nc\"}\n\n",
	} {
		r := httptest.NewRequest("GET", "/v1/monitor", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		if err := newStream(w, r).send(map[string]string{"a": "b\nc"}); err != nil {
			t.Fatal(err)
		}
		kind := w.Header().Get("Content-Type")
		if w.Body.String() != want || strings.HasPrefix(want, "data") != (kind == eventStream) {
			t.Errorf("accepting %q: %s %q, not %q", accept, kind, w.Body, want)
		}
	}
}
