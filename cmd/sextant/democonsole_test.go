package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The demonstration's console waits for a lab, shows its edge, and changes nothing.
func TestDemoConsole(t *testing.T) {
	w := newWorld(t, fakeNode)
	var c demoConsole
	address, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	page, code, _ := strings.Cut(address, "#code=")
	token := ""
	ask := func(method, address, body string, status int, wants string) []byte {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Sextant-Role", "admin") // which the page can't have
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status || !bytes.Contains(text, []byte(wants)) {
			t.Errorf("%s %s: %s %s, want %d and %q", method, address, response.Status, text,
				status, wants)
		}
		return text
	}
	var session struct{ Token string }
	if err := json.Unmarshal(ask("POST", page+"session", `{"code":"`+code+`"}`, 200, "token"),
		&session); err != nil {
		t.Fatal(err)
	}
	token = session.Token
	api := strings.TrimSuffix(page, "/console/") + "/v1/"
	ask("GET", api+"status", "", 404, "no lab of the demonstration is up")
	c.show(w.socket)
	ask("GET", api+"status", "", 200, `"node"`)
	ask("GET", api+"caller", "", 200, `"role":"read"`)
	ask("PUT", api+"services/web/backends/web1", `{"weight":2}`, 403, "needs the role operate")
	ask("GET", api+"config?secrets=1", "", 403, "needs the role")
}
