package e2e_test

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sextant/agent/api"
	console "sextant/agent/web"
	"sextant/config"
	"sextant/controller"
)

// needsBrowser returns where Chromium is. It and what npm fetches are no part of what tests need
// elsewhere.
func needsBrowser(t *testing.T) string {
	t.Helper()
	needsRoot(t)
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs Chromium: install Debian's chromium and npm")
	}
	if _, err := os.Stat("../../agent/web/node_modules/playwright-core"); err != nil {
		t.Skip("needs what drives Chromium: make web fetches it")
	}
	return program
}

// browse drives the console of a daemon by a script, which prints what is wrong.
func browse(t *testing.T, program, script, socket string, more ...string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	proxy := console.NewProxy(l.Addr().String())
	server := &http.Server{Handler: proxy.Handler(api.NewClient(socket).Forward(""))}
	go server.Serve(l)
	defer server.Close()
	args := append([]string{"../../agent/web/test/" + script, program, proxy.URL()}, more...)
	node := exec.CommandContext(t.Context(), "node", args...)
	if said, err := node.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, said)
	}
}

// The console of a running edge, in a browser: under load it drains a backend, and no request
// fails; it explains a flow and says why views are empty; nothing of it leaves the machine, its
// nodes do not move, and axe finds nothing that people can't use.
func TestConsole(t *testing.T) {
	program := needsBrowser(t)
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	must(t, err)
	a := upText(t, "quickstart.yaml", strings.Replace(string(text), "name: quickstart",
		"name: NAME", 1))
	client := a.client("edge")
	answered := func() {
		t.Helper()
		for deadline, before := time.Now().Add(patience), a.packets(); a.packets() < before+100; {
			if time.Now().After(deadline) {
				t.Fatal("the edge has no traffic")
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	// connections are short, so that many begin while the backend drains
	wrk := exec.Command("wrk", "--threads", "1", "--connections", "4", "--duration", "600s",
		"--timeout", "60s", "--header", "Connection: close", "http://[2001:db8:80::80]/?ms=20")
	var report bytes.Buffer
	wrk.Stdout, wrk.Stderr = &report, &report
	ended := make(chan error, 1)
	go func() { ended <- a.lab.Exec("client", wrk) }()
	answered()
	browse(t, program, "console.mjs", nodeOf(t, a.lab, "edge").Socket)
	answered()
	must(t, wrk.Process.Signal(syscall.SIGINT)) // it reports
	if err := <-ended; err != nil || !answers.MatchString(report.String()) ||
		strings.Contains(report.String(), "Socket errors") ||
		strings.Contains(report.String(), "Non-2xx") {
		t.Errorf("%v: %s", err, &report)
	}
	t.Logf("%s", &report)
	backends, err := client.Backends(t.Context(), "web")
	must(t, err)
	for _, b := range backends {
		if drained := b.State == config.Draining; drained != (b.Name == "web2") {
			t.Errorf("%s is %s", b.Name, b.State)
		}
	}
}

// The console of a controller, in a browser: it pins a path, and the flow's packets take it; a link
// is cut in one direction, and a flow that is not pinned is seen to leave it.
func TestControllerConsole(t *testing.T) {
	program := needsBrowser(t)
	f := newFabric(t, fabricGap, "backoffLeast: 200ms, backoffMost: 400ms")
	flows, _, end := f.uploads(4)
	pinned, other := flows[0].flow, flows[1].flow
	f.await("the head-end has a flow's path over s1", func() bool {
		must(t, f.client.Pin(t.Context(), controller.Pin{Flow: other,
			Path: []string{"r1", "s1", "r2"}}))
		known, err := f.client.Flow(t.Context(), other)
		return err == nil && known.State == "applied"
	})
	var moved []controller.Decision
	happened := make(chan struct{})
	go func() { // the link is cut as soon as the page has pinned the flow
		defer close(happened)
		for t.Context().Err() == nil {
			if known, err := f.client.Flow(t.Context(), pinned); err == nil && known.Pinned {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		cut := f.lab.Exec("s1", exec.Command("ip", "-6", "route", "add", "blackhole",
			"fcbb:bb00:2::/48", "metric", "1")) // what acknowledges goes on the way back
		unpinned := f.client.Unpin(t.Context(), other)
		var told error
		moved, told = f.client.SetLink(t.Context(), controller.LinkState{From: "s1", To: "r2"})
		if err := errors.Join(cut, unpinned, told); err != nil {
			t.Error(err)
		}
	}()
	browse(t, program, "controller.mjs", filepath.Join(f.dir, "controller.sock"),
		pinned.Source.String(), pinned.Destination.String())
	<-happened
	if len(moved) == 0 {
		t.Error("no flow has left the link")
	}
	came, _ := f.crossed("s2")
	f.await("a megabyte goes over the other spine", func() bool {
		now, _ := f.crossed("s2")
		return now-came > 1<<20
	})
	must(t, f.lab.Exec("s1", exec.Command("ip", "-6", "route", "del", "blackhole",
		"fcbb:bb00:2::/48", "metric", "1")))
	end()
	intact(t, flows)
}
