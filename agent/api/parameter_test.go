package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// breakable remembers whether the last change might end connections.
type breakable struct {
	*memory
	broke bool
}

func (b *breakable) Change(ctx context.Context,
	edit func(*config.Node) (*config.Node, error)) ([]config.Change, error) {
	b.broke = api.MayBreakConnections(ctx)
	return b.memory.Change(ctx, edit)
}

// served answers requests to a memory agent.
func served(t *testing.T) (*breakable, func(method, path, accept, body string) (int, string)) {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(nodeFile))
	if err != nil {
		t.Fatal(err)
	}
	agent := &breakable{memory: &memory{node: node}}
	handler := api.NewHandler(agent)
	return agent, func(method, path, accept, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		text, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, string(text)
	}
}

// A parameter that switches something on does so with 1 or true, and with nothing else: above all
// not with 0, and what is neither is not taken for one of them.
func TestSwitchesOfRequests(t *testing.T) {
	const one = `{"weight": 7}`
	for value, want := range map[string]struct {
		status int
		on     bool
	}{
		"": {http.StatusOK, false}, "=1": {http.StatusOK, true}, "=true": {http.StatusOK, true},
		"=0": {http.StatusOK, false}, "=false": {http.StatusOK, false},
		"=no": {http.StatusBadRequest, false}, "=": {http.StatusBadRequest, false},
	} {
		query := func(name string) string {
			if value == "" {
				return ""
			}
			return "?" + name + value
		}
		agent, ask := served(t)
		heavier := strings.Replace(nodeFile, `{name: web1, `, `{name: web1, weight: 3, `, 1)
		status, text := ask("POST", "/v1/apply"+query("dryRun"), "", heavier)
		_, runs := ask("GET", "/v1/config", "", "")
		if status != want.status || want.status == http.StatusOK &&
			strings.Contains(text, `"dryRun":true`) != want.on ||
			strings.Contains(runs, "weight: 3") != (status == http.StatusOK && !want.on) {
			t.Errorf("dryRun%s: %d %s", value, status, text)
		}
		status, text = ask("GET", "/v1/config"+query("secrets"), "", "")
		if status != want.status || strings.Contains(text, "00112233") != want.on {
			t.Errorf("secrets%s: %d %s", value, status, text)
		}
		status, text = ask("PUT", "/v1/services/web/backends/web2"+query("breakConnections"), "",
			one)
		_, runs = ask("GET", "/v1/config", "", "")
		if status != want.status || agent.broke != want.on ||
			strings.Contains(runs, "weight: 7") != (status == http.StatusOK) {
			t.Errorf("breakConnections%s: %d %s", value, status, text)
		}
	}
}
