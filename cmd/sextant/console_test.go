package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The address that is printed leads to the page and, for its code, to the agent's API, streams too.
func TestConsole(t *testing.T) {
	w := newWorld(t, fakeNode)
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	e := w.env("console")
	e.stdout = in
	ended := make(chan int)
	go func() { ended <- run(ctx, e) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	page, code, _ := strings.Cut(strings.TrimSpace(line), "#code=")
	ask := func(method, address, token, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "text/event-stream")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := bufio.NewReader(response.Body).ReadString('\n')
		return response, text
	}
	if r, text := ask("GET", page, "", ""); r.StatusCode != 200 || text != "<!doctype html>\n" {
		t.Errorf("the page: %s %s", r.Status, text)
	}
	_, text := ask("POST", page+"session", "", `{"code":"`+code+`"}`)
	var session struct{ Token string }
	if err := json.Unmarshal([]byte(text), &session); err != nil || session.Token == "" {
		t.Fatalf("the session: %s", text)
	}
	api := strings.TrimSuffix(page, "/console/") + "/v1/"
	if r, text := ask("GET", api+"caller", session.Token, ""); r.StatusCode != 200 ||
		!strings.Contains(text, `"role":"admin"`) {
		t.Errorf("the caller: %s %s", r.Status, text)
	}
	if r, text := ask("GET", api+"monitor", session.Token, ""); r.StatusCode != 200 ||
		!strings.HasPrefix(text, "id: ") {
		t.Errorf("the stream: %s %s", r.Status, text)
	}
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("it ends with %d", code)
	}
	for _, args := range []string{"--listen [::]:80", "--listen edge1:80", "--lab x",
		"--lab x --node y --of-controller"} {
		text := newWorld(t, fakeNode).run(append([]string{"console"}, strings.Fields(args)...)...)
		if !strings.HasSuffix(text, "[exit 2]\n") {
			t.Errorf("not refused: %s", text)
		}
	}
}
