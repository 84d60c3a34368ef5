package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/agent/access"
	"sextant/agent/api"
)

// operation is one of the API's description.
type operation struct {
	method, path string
	Needs        api.Permission `json:"x-permission"`
	Parameters   []struct{ Name, In string }
	RequestBody  *struct {
		Content map[string]struct{ Schema map[string]any }
	}
}

// generator makes requests from the API's description, most of them wrong somewhere.
type generator struct {
	*rand.Rand
	schemas map[string]map[string]any
}

func (g generator) one(values ...string) string { return values[g.IntN(len(values))] }

func (g generator) text() string {
	return g.one("", "web", "web1", "edge", "nothing", "..", "a b", "é\u202e", "\x00", "%",
		"{}", "0", "1", "-1", "1e9", "99999999999999999999", "fd00:5e::1", "fcbb:bb00:1::", "true",
		"serving", "draining", "[::1]:80", strings.Repeat("x", 5000))
}

// request makes a request for an operation.
func (g generator) request(ctx context.Context, root string, o operation) *http.Request {
	path, query := o.path, url.Values{}
	for _, p := range o.Parameters {
		switch {
		case p.In == "path":
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(g.text()), 1)
		case g.IntN(3) == 0:
			query.Set(p.Name, g.text())
		}
	}
	var body io.Reader
	if o.RequestBody != nil || g.IntN(8) == 0 {
		body = bytes.NewReader(g.body(o))
	}
	r, err := http.NewRequestWithContext(ctx, o.method, root+path+"?"+query.Encode(), body)
	if err != nil {
		panic(err) // what is escaped is an address
	}
	if match := g.one("", "", "*", `"x"`, "x", "\"", "W/\"1\""); match != "" {
		r.Header.Set("If-Match", match)
	}
	r.Header.Set("Accept", g.one("*/*", "application/json", "text/event-stream", "x", ""))
	return r
}

func (g generator) body(o operation) []byte {
	if g.IntN(4) == 0 || o.RequestBody == nil {
		return []byte(g.one("", "null", "[]", "{", "{}", `{"unknown":1}`, "\xff\xfe", "node: x",
			"{}{}",
			strings.Repeat("[", 20000), `{"name":`+strings.Repeat("9", 400)+`}`, "&a [*a,*a]",
			"edge: {services: [{name: web}]}"))
	}
	for _, content := range o.RequestBody.Content {
		text, err := json.Marshal(g.value(content.Schema, 0))
		if err != nil {
			panic(err) // it has no values that JSON lacks
		}
		return text
	}
	return nil
}

// value is one of a schema, or of another type once in eight times.
func (g generator) value(schema map[string]any, depth int) any {
	if name, ok := schema["$ref"].(string); ok {
		schema = g.schemas[name[strings.LastIndex(name, "/")+1:]]
	}
	kind, _ := schema["type"].(string)
	if g.IntN(8) == 0 || depth > 6 {
		kind = g.one("string", "integer", "null", "boolean")
	}
	switch kind {
	case "object":
		object := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if of, ok := properties[key].(map[string]any); ok && g.IntN(3) > 0 {
				object[key] = g.value(of, depth+1)
			}
		}
		return object
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.value(items, depth+1))
		}
		return list
	case "integer", "number":
		return []any{0, 1, -1, 3, 80, 65536, 1e18, 0.5}[g.IntN(8)]
	case "boolean":
		return g.IntN(2) == 0
	case "null":
		return nil
	}
	return g.text()
}

// described are the operations of the API's description, and its schemas.
func described(t *testing.T, text []byte) (all []operation, schemas map[string]map[string]any) {
	t.Helper()
	var d struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]map[string]any }
	}
	must(t, json.Unmarshal(text, &d))
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			o := d.Paths[path][method]
			o.method, o.path = strings.ToUpper(method), path
			all = append(all, o)
		}
	}
	return all, d.Components.Schemas
}

// Requests generated from the API's own description, by all roles, and without a token: nothing is
// the agent's fault, what a role may not do is refused, and what fails changes nothing.
func TestGeneratedRequests(t *testing.T) {
	needsRoot(t)
	a, dir, token := remoteEdge(t)
	const root = "https://[fd00:5e::e1]:9479"
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(_ context.Context, network, address string) (conn net.Conn, err error) {
			inside(t, a.lab, "router", func() error {
				conn, err = net.Dial(network, address)
				return err
			})
			return conn, err
		},
	}}
	defer client.CloseIdleConnections()
	// send returns the status, and of an answer that ends the beginning.
	send := func(r *http.Request, role api.Permission) (int, string) {
		t.Helper()
		if role != "" {
			r.Header.Set("Authorization", "Bearer "+token[role])
		}
		response, err := client.Do(r)
		must(t, err)
		defer response.Body.Close()
		if slices.Contains([]string{"/v1/monitor", "/v1/events", "/v1/capture"}, r.URL.Path) {
			return response.StatusCode, ""
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		must(t, err)
		return response.StatusCode, string(text)
	}
	get := func(path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", root+path, nil)
		must(t, err)
		code, text := send(r, api.Admin)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, text)
		}
		return text
	}
	operations, schemas := described(t, []byte(get("/v1/openapi.json")))
	if len(operations) < 40 {
		t.Fatalf("the API describes %d operations", len(operations))
	}
	g := generator{rand.New(rand.NewPCG(7, 7)), schemas}
	running := get("/v1/config")
	sent := map[int]int{}
	for _, role := range append([]api.Permission{""}, access.Roles...) {
		for _, o := range operations {
			for range 12 {
				ctx, cancel := context.WithCancel(t.Context())
				r := g.request(ctx, root, o)
				code, text := send(r, role)
				cancel()
				sent[code]++
				what := fmt.Sprintf("%q: %s %s: %d %.300s", role, o.method, r.URL, code, text)
				switch {
				case code >= 500:
					t.Errorf("a fault of the agent: %s", what)
				case role == "" && code != http.StatusUnauthorized:
					t.Errorf("without a token: %s", what)
				case role != "" && !role.Includes(o.Needs) && code != http.StatusForbidden &&
					code < 400:
					t.Errorf("not allowed: %s", what)
				}
				if o.method == "GET" {
					continue
				}
				if now := get("/v1/config"); now != running {
					if code >= 400 {
						t.Errorf("it failed, and has changed what runs: %s", what)
					}
					running = now
				}
			}
		}
	}
	t.Logf("answers by status: %v", sent)
	if sent[http.StatusOK] < 100 || sent[http.StatusBadRequest] < 100 ||
		sent[http.StatusForbidden] < 100 {
		t.Errorf("answers by status: %v; want a hundred of 200, 400 and 403 each", sent)
	}
}
