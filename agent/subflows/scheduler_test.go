package subflows

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"sextant/agent/api"
)

// startController serves placements as a controller does, at a socket: each flow gets port 20000
// and a path, those to host 192.0.2.1 are refused.
func startController(t *testing.T) (socket string, released chan []string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	released = make(chan []string, 1)
	server := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Items []placement
				Names []string
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil ||
				r.URL.Path != "/v1/elephants" {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
			if r.Method == http.MethodDelete {
				released <- body.Names
				_, _ = w.Write([]byte("{}"))
				return
			}
			for i := range body.Items {
				one := &body.Items[i]
				if one.Flow.Destination.Addr().String() == "192.0.2.1" {
					w.WriteHeader(http.StatusNotFound)
					_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{
						"code": "notFound", "message": "the host 192.0.2.1 is unknown"}})
					return
				}
				one.Flow.Source = netip.AddrPortFrom(one.Flow.Source.Addr(), 20000)
				one.Path = []string{"leaf1", "spine2"}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"items": body.Items})
		})}}
	server.Start()
	t.Cleanup(server.Close)
	return socket, released
}

// A connection to a host that the controller does not know holds up no subflow of others.
func TestUnknownHostHoldsUpNone(t *testing.T) {
	socket, released := startController(t)
	s := &scheduler{routes: map[string]string{}, dial: func() (*api.Client, error) {
		return api.NewClientOf("controller", "sextant controller -f FILE", socket), nil
	}}
	var due []Subflow
	for i, host := range []string{"10.0.2.1:443", "192.0.2.1:443", "10.0.2.2:443"} {
		due = append(due, Subflow{Token: uint32(i + 1),
			Local:  netip.MustParseAddrPort("10.0.1.1:0"),
			Remote: netip.MustParseAddrPort(host)})
	}
	given, err := s.give(t.Context(), due)
	if len(given) != 2 || given[0].Token != 1 || given[1].Token != 3 ||
		given[0].Local.Port() != 20000 || s.routes[given[1].Name()] != "leaf1 spine2" ||
		err == nil || !strings.Contains(err.Error(), "the host 192.0.2.1") {
		t.Errorf("given are %+v, and it says %v", given, err)
	}
	if err := s.release(t.Context(), names(given)); err != nil {
		t.Fatal(err)
	}
	if got := <-released; len(got) != 2 || got[0] != given[0].Name() || len(s.routes) > 0 {
		t.Errorf("released are %q", got)
	}
}
