package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/controller"
)

// startController runs a controller of a small network until the test ends.
func startController(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "c")
	c, err := controller.Parse([]byte("{topology: testdata/controller.edges, seed: 4, " +
		"policy: {name: smoothie, backoffLeast: 1h, backoffMost: 1h}, " +
		"api: {socket: " + socket + "}}"))
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
	socket := startController(t)
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
		"path links -o name", "controller simulate " + flow + " --path a,b,d -o name",
		"controller simulate " + flow + " --path a,x,d", "controller simulate a b --path a",
		"controller simulate " + flow + " --path a,b,d --queue a>b=x",
		"controller simulate " + flow + " --path a,b,d --queue a>b=90/100 -o name",
		"path pin " + flow + " a,c,d", "path flows", "path pin " + flow + " a,d",
		"path unpin " + flow, "path unpin " + flow,
		"controller link a c down", "controller link a c off", "controller link a z down",
		"controller status -o name",
		"path flows --controller /nonexistent",
	} {
		text.WriteString(w.run(strings.Fields(line)...))
	}
	golden(t, "controller", strings.ReplaceAll(text.String(), socket, "CONTROLLER"))
}
