package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// Each path of the description refuses the methods that it is not described with, and names those
// that it is; a GET answers HEAD, too.
func TestOtherMethodsAreRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	server := Serve("agent/api", title, endpoints(handler{}))
	for path, operations := range described.Paths {
		allowed := []string{}
		for method := range operations {
			allowed = append(allowed, strings.ToUpper(method))
			if method == "get" {
				allowed = append(allowed, http.MethodHead)
			}
		}
		slices.Sort(allowed)
		for _, method := range []string{"DELETE", "PATCH", "POST", "PUT", "OPTIONS", "TRACE",
			"BREW"} {
			if slices.Contains(allowed, method) {
				continue
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			said := strings.Split(w.Header().Get("Allow"), ", ")
			slices.Sort(said)
			if w.Code != http.StatusMethodNotAllowed || !slices.Equal(said, allowed) ||
				!strings.Contains(w.Body.String(), `"code":"noMethod"`) {
				t.Errorf("%s %s: %d, Allow: %v, not %v: %s", method, path, w.Code, said, allowed,
					w.Body)
			}
		}
	}
}
