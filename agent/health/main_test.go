package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"sextant/agent/health"
	"sextant/config"
)

// TestMain lets the test program be a process inside a network namespace, for a Monitor makes
// goroutines, which a namespace does not hold: "paths PATHS", "unload" and "monitor JOBS".
func TestMain(m *testing.M) {
	helpers := map[string]func(argument string) error{"paths": setPaths, "monitor": monitorOnce,
		"load": checkLoad, "floor": checkFloor, "serve": serve, "starve": starve,
		"keepmany": keepMany}
	if len(os.Args) == 3 && helpers[os.Args[1]] != nil {
		if err := helpers[os.Args[1]](os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// request is what a helper process is told to do.
type request struct {
	Paths []health.Path
	Jobs  []health.Job
}

// setPaths makes the paths and leaves them, as an agent that is killed does.
func setPaths(argument string) error {
	var r request
	if err := json.Unmarshal([]byte(argument), &r); err != nil {
		return err
	}
	paths, err := health.OpenPaths()
	if err != nil {
		return err
	}
	return paths.Set("eth0", outer, r.Paths)
}

// monitorOnce checks each job once, on paths, and prints what came of it.
func monitorOnce(argument string) error {
	var r request
	if err := json.Unmarshal([]byte(argument), &r); err != nil {
		return err
	}
	paths, err := health.OpenPaths()
	if err != nil {
		return err
	}
	if err := paths.Set("eth0", outer, r.Paths); err != nil {
		return err
	}
	for i := range r.Jobs {
		r.Jobs[i].Target.Mark = paths.Mark(r.Paths[i])
	}
	monitor := health.NewMonitor(context.Background())
	monitor.Set(r.Jobs)
	outcome := map[string]string{}
	for len(outcome) < len(r.Jobs) {
		result := <-monitor.Results()
		outcome[result.Backend+" "+result.Service] = "ok"
		if result.Err != nil {
			outcome[result.Backend+" "+result.Service] = result.Err.Error()
		}
	}
	monitor.Stop()
	return errors.Join(json.NewEncoder(os.Stdout).Encode(outcome), paths.Set("eth0", outer, nil))
}

// check is one that is made often, and has time on a machine that others use too.
func check(kind config.CheckKind) *config.Check {
	return &config.Check{
		Kind: kind, Interval: 100 * time.Millisecond, Timeout: 30 * time.Second, Path: "/health",
		Status: config.StatusRange{First: 200, Last: 399},
	}
}

func target(address string) health.Target {
	return health.Target{
		Service: "web", Backend: "web1", Address: netip.MustParseAddrPort(address),
		SID: netip.MustParseAddr("fcbb:bb00:1::"),
	}
}
