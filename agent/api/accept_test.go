package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Clients that accept JSON beside other things get it, and those that name it no.
func TestConfigurationAsAccepted(t *testing.T) {
	for accept, want := range map[string]bool{"": false, "*/*": false, "application/json": true,
		"application/json, text/plain, */*": true, "text/html;q=0.9,application/json;q=0.8": true,
		"application/json; charset=utf-8": true, "application/yaml": false,
		"application/json;q=0, */*": false, ";": false} {
		_, ask := served(t)
		status, text := ask("GET", "/v1/config", accept, "")
		if status != http.StatusOK || strings.HasPrefix(text, "{") != want {
			t.Errorf("Accept: %q: %d %.40q", accept, status, text)
		}
	}
}
