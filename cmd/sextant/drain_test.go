package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sextant/agent/peer"
	"sextant/config"
	"sextant/packet/flow"
)

// hostAgent answers an edge with one number after the other, and then with the last one.
func hostAgent(t *testing.T, connections ...string) (address string) {
	var asked atomic.Int32
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := min(int(asked.Add(1))-1, len(connections)-1)
		if r.URL.Path != "/v1/connections" {
			t.Errorf("%s is asked for", r.URL)
		}
		w.Write(
			[]byte(
				`{"items":[{"service":"other","vip":"2001:db8:80::80","protocol":"tcp","port":0,"connections":77},` +
					`{"service":"web","vip":"2001:db8:80::80","protocol":"tcp","port":80,"connections":` +
					connections[n] + `}]}`))
	})
	secret, err := flow.ParseSecret("00112233445566778899aabbccddeeff") // as in fakeNode
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(peer.NewChallenges().Answer(
		func(context.Context) (flow.Secret, error) { return secret, nil }, answer))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func (w *world) backendState(name string) config.BackendState {
	for _, b := range w.agent.node.Edge.Services[0].Backends {
		if b.Name == name {
			return b.State
		}
	}
	return ""
}

func TestDrainWaits(t *testing.T) {
	w := newWorld(t, fakeNode)
	address := hostAgent(t, "12", "12", "12", "3", "1", "0")
	if out := w.run("backend", "set", "web", "web1", "--agent", address); !strings.HasSuffix(out,
		"[exit 0]\n") {
		t.Fatal(out)
	}
	got := w.run("backend", "drain", "web", "web1", "--wait")
	const want = "$ sextant backend drain web web1 --wait\n" +
		"web1: 12 connections left\nweb1: 3 connections left\nweb1: 1 connection left\nweb1: 0 " +
		"connections left\n[exit 0]\n"
	if got != want || w.backendState("web1") != config.Draining {
		t.Errorf("state %s, got\n%s\nwant\n%s", w.backendState("web1"), got, want)
	}
	// Again, when nothing is left, for a program.
	got = w.run("backend", "drain", "web", "web1", "--wait", "-o", "json")
	if !strings.Contains(got, `{"service":"web","backend":"web1","agent":"`+address+
		`","connections":0}`) || strings.Count(got, "\n") != 3 {
		t.Error(got)
	}
}

// Who can't be told what is left gets nothing done by halves.
func TestDrainThatNobodyCanFollow(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, c := range []struct{ name, agent, want string }{
		{"no agent", "",
			`who asks for connections of backend "web1" must know its agent; write api: {metrics: "[ADDRESS]:9477"} ` +
				"into the host's node file, and here: sextant backend set web web1 --agent " +
				"[ADDRESS]:9477"},
		{"nobody there", "127.0.0.1:1",
			"ask the host's agent at 127.0.0.1:1 for its connections: "},
		{"something else there", "http", "for its connections: it answers 404 Not Found"},
	} {
		if c.agent == "http" {
			other := httptest.NewServer(http.NotFoundHandler())
			defer other.Close()
			c.agent = other.Listener.Addr().String()
		}
		if c.agent != "" {
			w.run("backend", "set", "web", "web1", "--agent", c.agent)
		}
		if got := w.run("backend", "drain", "web", "web1", "--wait"); !strings.Contains(got,
			c.want) || strings.HasSuffix(got, "[exit 0]\n") {
			t.Errorf("%s: %s", c.name, got)
		}
		if state := w.backendState("web1"); state != config.Up {
			t.Errorf("%s: the backend is %s", c.name, state)
		}
	}
	if got := w.run("backend", "drain", "web", "nobody", "--wait"); !strings.Contains(got,
		`there is no backend "nobody" in service "web"`) {
		t.Error(got)
	}
}

// Idle connections are as good a reason to ask as packets, where a host's agent tells of them.
func TestDeletionAsksForIdleConnections(t *testing.T) {
	for _, c := range []struct{ command, open, want string }{
		{"backend delete web web1", "12", "it carries traffic (12 open connections)"},
		{"backend delete web web1 --yes", "12", "[exit 0]"},
		{"backend delete web web1", "0", "[exit 0]"},
		{"service delete web --role edge", "12", "it carries traffic (12 open connections)"},
		{"service delete web --role edge", "0", "[exit 0]"},
	} {
		w := newWorld(t, fakeNode)
		w.run("backend", "set", "web", "web1", "--agent", hostAgent(t, c.open))
		if got := w.run(strings.Fields(c.command)...); !strings.Contains(got, c.want) {
			t.Errorf("with %s open connections:\n%s\nwant %s", c.open, got, c.want)
		}
	}
}
