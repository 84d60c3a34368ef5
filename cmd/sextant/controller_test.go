package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/controller"
)

// startController runs a controller of a small network until the test ends.
func startController(t *testing.T, more string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "c")
	c, err := controller.Parse([]byte("{topology: testdata/controller.edges, seed: 4, " +
		"policy: {name: smoothie, backoffLeast: 1h, backoffMost: 1h}, " +
		"api: {socket: " + socket + "}" + more + "}"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{Config: c, Version: "test",
			Log: slog.New(slog.DiscardHandler), Open: readTopology})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for !answers(t, socket) {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	return socket
}

func answers(t *testing.T, socket string) bool {
	_, err := controller.NewClient(socket).Status(t.Context())
	return err == nil
}

// The commands of the controller, one after the other against one that runs.
func TestControllerSession(t *testing.T) {
	w := newWorld(t, fakeNode)
	socket := startController(t, "")
	w.environ["SEXTANT_CONTROLLER"] = socket
	var text strings.Builder
	const flow = "[2001:db8:1::1]:40000 [2001:db8:2::1]:443"
	for _, line := range []string{
		"controller", "controller status", "controller nonsense",
		"controller -f testdata/none.yaml", "controller -f testdata/controller-bad.yaml",
		"controller simulate " + flow + " --path a,b,d",
		"controller report testdata/reports.json", "controller report testdata/controller.edges",
		"path flows", "path flows " + flow, "path flows " + flow + " --protocol udp",
		"path flows [2001:db8:1::1]:40000", "path reroutes --moved", "path reroutes --limit 0",
		"path links -o name", "path groups", "path groups -o json",
		"controller simulate " + flow + " --path a,b,d -o name",
		"controller simulate " + flow + " --path a,x,d", "controller simulate a b --path a",
		"controller simulate " + flow + " --path a,b,d --queue a>b=x",
		"controller simulate " + flow + " --path a,b,d --queue a>b=90/100 -o name",
		"path pin " + flow + " a,c,d", "path flows", "path pin " + flow + " a,d",
		"path unpin " + flow, "path unpin " + flow,
		"controller link a c down", "controller link a c off", "controller link a z down",
		"controller status -o name",
		"path flows --controller /nonexistent", "path flows --socket /nonexistent",
	} {
		text.WriteString(w.run(strings.Fields(line)...))
	}
	golden(t, "controller", strings.ReplaceAll(text.String(), socket, "CONTROLLER"))
}

// startFabric runs a controller of a network whose sources choose paths.
func startFabric(t *testing.T) (socket string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("00112233445566778899aabbccddeeff"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := ""
	for i, spine := range []string{"b", "c", "e"} {
		links += fmt.Sprintf("{from: a, to: %s, gateways: [10.9.%d.1, \"fd00::%d\"]},", spine, i,
			i)
	}
	return startController(t, ", links: ["+links+"], cflb: {keyFile: "+
		key+", ipv4: {fields: source-port, radix: 4}, ipv6: {fields: flow-label, radix: 4}, "+
		"hosts: ["+
		"{prefix: 10.0.1.0/24, router: a}, {prefix: 10.0.2.0/24, router: d}, "+
		"{prefix: \"2001:db8:1::/48\", router: a}, {prefix: \"2001:db8:2::/48\", router: d}]}")
}

// The commands of a network whose sources choose paths, against a controller that knows one.
func TestElephantSession(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.environ["SEXTANT_CONTROLLER"] = startFabric(t)
	var text strings.Builder
	const flow, flow6 = "10.0.1.1 10.0.2.1:443", "2001:db8:1::1 [2001:db8:2::1]:443"
	for _, line := range []string{
		"path ports " + flow + " --via a,c,d", "path ports " + flow6 + " --via a,c,d -o name",
		"path ports " + flow + " --via a,b", "path ports " + flow,
		"path ports 10.0.3.1 10.0.2.1:443 --via a,c,d",
		"path recover 10.0.1.1:40000 10.0.2.1:443", "path recover " + flow6 + " --flow-label 0",
		"path recover " + flow6 + " --flow-label 0xfffff",
		"path recover " + flow6 + " --flow-label x",
		"path best " + flow + " --paths 3", "path best " + flow + " --by coloring",
		"path place " + flow, "path place " + flow + " --name one",
		"path place " + flow + " --name two --for 2m", "path placed",
		"path place 10.0.1.2 10.0.2.1:443 --name one", "controller link a b down",
		"path placed -o name", "path release one two", "path release one", "path release",
		"path placed",
		"controller status",
	} {
		text.WriteString(w.run(strings.Fields(line)...))
	}
	golden(t, "elephants", text.String())
}
