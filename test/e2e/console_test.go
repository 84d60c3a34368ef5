package e2e_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sextant/agent/api"
	console "sextant/agent/web"
	"sextant/config"
)

// The console of a running edge, in a browser: it drains a backend, explains a flow and says why
// views are empty; nothing of it leaves the machine, its nodes do not move, and axe finds nothing
// that people can't use. It runs where Chromium is, and what make web fetches.
func TestConsole(t *testing.T) {
	needsRoot(t)
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Log("not run: chromium is not installed")
		return
	}
	if _, err := os.Stat("../../agent/web/node_modules/playwright-core"); err != nil {
		t.Log("not run: playwright is not there; make web fetches it")
		return
	}
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	must(t, err)
	a := upText(t, "quickstart.yaml", strings.Replace(string(text), "name: quickstart",
		"name: NAME", 1))
	edge, err := a.lab.Node("edge")
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	proxy := console.NewProxy(l.Addr().String())
	client := api.NewClient(edge.Socket)
	server := &http.Server{Handler: proxy.Handler(client.Forward())}
	go server.Serve(l)
	defer server.Close()
	node := exec.CommandContext(t.Context(), "node", "../../agent/web/test/console.mjs", browser,
		proxy.URL())
	if said, err := node.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	backends, err := client.Backends(t.Context(), "web")
	must(t, err)
	for _, b := range backends {
		if drained := b.State == config.Draining; drained != (b.Name == "web2") {
			t.Errorf("%s is %s", b.Name, b.State)
		}
	}
}
