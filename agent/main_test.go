package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// TestMain lets the test program be a process that a test kills or lacks privileges: "helper KIND
// FILE-OR-ADDRESS".
func TestMain(m *testing.M) {
	helpers := map[string]func(file string) error{
		"save": saveForEver, "powerless": runPowerless, "hostile": runHostileClients,
	}
	if len(os.Args) == 4 && os.Args[1] == "helper" {
		if err := helpers[os.Args[2]](os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runPowerless runs an agent without any capability.
func runPowerless(file string) error {
	runtime.LockOSThread() // they are the thread's
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &make([]unix.CapUserData, 2)[0]); err != nil {
		return err
	}
	node, err := api.LoadNode(file)
	if err != nil {
		return err
	}
	return Run(context.Background(), Options{
		Node: node, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}
