package agent_test

import (
	"net/http"
	"strings"
	"testing"
)

// A write with the ETag of a configuration changes that one alone.
func TestWritesOfOneConfiguration(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	client := m.client()
	ask := func(method, path, match, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path,
			strings.NewReader(body))
		must(t, err)
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		response, err := client.Do(r)
		must(t, err)
		must(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("ETag")
	}
	_, first := ask("GET", "/v1/config", "", "")
	if first == "" {
		t.Fatal("the configuration has no ETag")
	}
	put := func(match, body string) int {
		status, _ := ask("PUT", "/v1/services/web/backends/web1", match, body)
		return status
	}
	for _, step := range []struct {
		match, body string
		want        int
	}{
		{first, `{"weight": 2}`, http.StatusOK},
		{first, `{"weight": 3}`, http.StatusPreconditionFailed},
		{"*", `{"weight": 4}`, http.StatusOK}, {`"nonsense"`, `{"weight": 5}`,
			http.StatusPreconditionFailed},
	} {
		if got := put(step.match, step.body); got != step.want {
			t.Errorf("If-Match %s with %s: %d, want %d", step.match, step.body, got, step.want)
		}
	}
	_, now := ask("GET", "/v1/config", "", "")
	if status, _ := ask("POST", "/v1/apply", first, m.text(nodeText)); status !=
		http.StatusPreconditionFailed {
		t.Errorf("applying over another configuration: %d", status)
	}
	if status, _ := ask("POST", "/v1/apply", now, m.text(nodeText)); now == first ||
		status != http.StatusOK {
		t.Errorf("applying over the configuration that was read: %d", status)
	}
	if _, back := ask("GET", "/v1/config", "", ""); back != first {
		t.Errorf("the same configuration has the ETags %s and %s", first, back)
	}
	// what a second operator changed meanwhile is neither undone nor confirmed
	for _, path := range []string{"/v1/rollback", "/v1/confirm"} {
		if status, _ := ask("POST", path, now, ""); status != http.StatusPreconditionFailed {
			t.Errorf("%s of another configuration: %d", path, status)
		}
	}
	if status, _ := ask("POST", "/v1/rollback", first, ""); status != http.StatusOK {
		t.Errorf("/v1/rollback of the configuration that was read: %d", status)
	}
}
