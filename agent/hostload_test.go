package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"sextant/agent/api"
	"sextant/agent/serverload"
)

// What a drain waits for, and what is asked before a backend is deleted, are a service's open
// connections, whatever its policy goes by.
func TestConnectionsAreNoLoad(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "load")
	gauge, err := serverload.OpenGauge(file)
	must(t, err)
	gauge.Set(37)
	text := strings.Replace(nodeText, "port: 443,", "port: 443, load: \"memory:"+file+"\",", 1)
	r := m.start(text)
	defer r.stop()
	open, err := ebpf.LoadPinnedMap(filepath.Join(m.pins, "host", "busy"), nil)
	must(t, err)
	defer open.Close()
	for index := range uint32(3) { // whichever it has
		must(t, open.Put(index, int32(5)))
	}
	var host api.HostService
	for deadline := time.Now().Add(patience); host.Busy != 37 && time.Now().Before(deadline); {
		services, err := r.Services(t.Context(), "api", api.Host)
		must(t, err)
		host = *services[0].Host
	}
	if host.Busy != 37 || host.Connections != 5 {
		t.Errorf("busy %d, %d connections; want 37, as its load says, and 5", host.Busy,
			host.Connections)
	}
	answer := httptest.NewRecorder()
	api.ConnectionsHandler(oneHost{service: api.Service{Host: &host}}).ServeHTTP(answer,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/connections", nil))
	var told api.List[api.HostConnections]
	must(t, json.Unmarshal(answer.Body.Bytes(), &told))
	if len(told.Items) != 1 || told.Items[0].Connections != 5 {
		t.Errorf("edges are told %+v, want 5 connections", told.Items)
	}
}

// oneHost is an agent with one service.
type oneHost struct {
	api.Agent
	service api.Service
}

func (o oneHost) Services(context.Context, ...string) ([]api.Service, error) {
	return []api.Service{o.service}, nil
}
