package lab_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/lab"
	"sextant/linux"
)

const small = `
name: NAME
topology:
  nodes:
    a: {addresses: ["fd00::1"], processes: [{name: sleep, command: ["{self}", helper, sleep, ""]}]}
    b:
  links:
    - endpoints: ["a:eth0", "b:eth0"]
run:
  - {node: a, command: "echo $SEXTANT_NODE {dir}"}
  - {node: b, command: [sh, -c, "echo problem >&2; exit $STATUS"]}
`

func TestUpOfARunningLab(t *testing.T) {
	l := up(t, small)
	_, err := lab.Up(t.Context(), parse(t, l.Name, small), lab.Options{})
	wantError(t, err, lab.ErrRunning, "the lab is up already: "+l.Name+", since ",
		`take it down with "sextant lab down `+l.Name+`"`)
	if summary := listed(t, l.Name); summary == nil || summary.Status != lab.Running ||
		summary.Processes != 1 {
		t.Errorf("List says %+v, want running with one process", summary)
	}
}

func listed(t *testing.T, name string) *lab.Summary {
	t.Helper()
	labs, err := lab.List()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(labs, func(s lab.Summary) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &labs[i]
}

func TestDownTwice(t *testing.T) {
	l := up(t, small)
	for range 2 {
		if err := lab.Down(l.Name, nil); err != nil {
			t.Error(err)
		}
	}
	if err := lab.Down("../"+l.Name, nil); err != nil {
		t.Errorf("Down of what can't be a lab: %v", err)
	}
}

func TestUpFailsAndLeavesNothing(t *testing.T) {
	tests := []struct {
		name, node string
		want       []string
	}{
		{"exec fails", `exec: ["echo why; exit 7"]`,
			[]string{"node a: echo why; exit 7: exit status 7; it wrote:\n  why"}},
		{"exec is missing", `exec: [[no-such-program]]`, []string{"node a: no-such-program: " +
			"start no-such-program: executable file not found in $PATH; install it or give its " +
			"whole path"}},
		{"process fails at once", `processes: [{name: p, command: ["{self}", helper, fail, now]}]`,
			[]string{"node a: process p: it ended at once: exit status 1; it wrote:\n  failing: " +
				"now"}},
		{"process ends before it is ready",
			`processes: [{name: p, command: "exit 0", ready: "file:never"}]`,
			[]string{"node a: process p: it ended before it was ready (file:never): exit status " +
				"0; it wrote nothing"}},
		{"process is never ready",
			`processes: [{name: p, command: "exec sleep 1000", ready: "tcp://[fd00::1]:80"}]`,
			[]string{"node a: process p: it is not ready (tcp://[fd00::1]:80) after 3s: ",
				"connection refused"}},
		{"sysctl is unknown", `sysctls: {net.ipv4.no_such: 1}`,
			[]string{"node a: write sysctl net.ipv4.no_such: no such file or directory; check " +
				"the name"}},
		{"agent is never ready", `sextant: {api: {socket: "{dir}/s"}}`,
			[]string{"node a: process sextant: it is not ready (http:", "after 3s"}},
		{"socket path is too long", `sextant: {api: {socket: "{dir}/` + strings.Repeat("s",
			100) + `"}}`, []string{"the API socket of node a is /run/", "and Linux takes 107"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			name := newName(t)
			spec := parse(t, name, "name: NAME\ntopology:\n  nodes:\n    a:\n      addresses: "+
				"['fd00::1']\n      "+test.node+"\n")
			_, err := lab.Up(t.Context(), spec, lab.Options{
				Agent:        []string{"/bin/sleep", "1000"},
				ReadyTimeout: 3 * time.Second, // in which a process that ends has ended
				SettleTime:   time.Minute,     // no process here lives that long
			})
			wantError(t, err, nil, test.want...)
			nothingLeft(t, name)
		})
	}
}

func TestUpOfAWrongSpec(t *testing.T) {
	_, err := lab.Up(t.Context(), &lab.Spec{Name: "x",
		Nodes: []lab.NodeSpec{{Name: "a"}, {Name: "a"}}}, lab.Options{})
	var faults lab.Faults
	if !errors.As(err, &faults) ||
		err.Error() != "topology.nodes.a: there are two nodes a; rename one of the two" {
		t.Errorf("error is %v", err)
	}
}

func TestUpSparesForeignNamespaces(t *testing.T) {
	name := newName(t)
	foreign, err := linux.CreateNetns("sx-" + name + "-a")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	_, err = lab.Up(t.Context(), parse(t, name, small), lab.Options{})
	wantError(t, err, nil, "network namespace sx-"+name+"-a is there, but no lab "+name+" is; ",
		`"ip netns del sx-`+name+`-a"`)
	if !linux.NetnsExists("sx-" + name + "-a") {
		t.Error("Up removed a namespace that it had not made")
	}
	if err := linux.DeleteNetns("sx-" + name + "-a"); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	for _, at := range []string{"lab.NetworkBuilt", "lab.CommandDone", "lab.ProcessStarted"} {
		t.Run(at, func(t *testing.T) {
			name := newName(t)
			spec := parse(t, name, `
name: NAME
topology:
  nodes:
    a:
      exec: ["true", "test -e done || sleep 0.2"]
      processes: [{name: p, command: "exec sleep 1000", ready: "file:never"}]
`)
			ctx, cancel := context.WithCancelCause(t.Context())
			ctrlC := errors.New("ctrl-c")
			var r recorder
			_, err := lab.Up(ctx, spec, lab.Options{Events: func(e lab.Event) {
				r.add(e)
				if r.events[len(r.events)-1] == at {
					cancel(ctrlC)
				}
			}})
			wantError(t, err, context.Canceled, "stopped: context canceled: ctrl-c")
			if !errors.Is(err, ctrlC) {
				t.Errorf("%v does not wrap the cause", err)
			}
			nothingLeft(t, name)
		})
	}
}

// TestCrash kills a process that brings a lab up, at several moments, and one
// that runs a lab. The next Up must find no trip wire.
func TestCrash(t *testing.T) {
	for _, test := range []struct{ helper, at string }{
		{"up", "lab.NetworkBuilt"},
		{"up", "lab.ProcessStarted"},
		{"run", "lab.LabUp"},
	} {
		t.Run(test.helper+" at "+test.at, func(t *testing.T) {
			name := newName(t)
			startHelper(t, test.helper, writeSpec(t, name), test.at, killed)
			// A child that was being started holds the lock until it has become its program.
			eventually(t, "List tells of a leftover", func() bool {
				summary := listed(t, name)
				return summary != nil && summary.Status == lab.LeftOver
			})
			var r recorder
			if _, err := lab.Up(t.Context(), parse(t, name, small),
				lab.Options{Events: r.add}); err != nil {
				t.Fatal(err)
			}
			if r.events[0] != "lab.LeftoversRemoved" {
				t.Errorf("events: %v, want the removal of leftovers first", r.events)
			}
		})
	}
}

// killed ends a helper at once and waits for its end.
func killed(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func writeSpec(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(small, "NAME", name)),
		0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// startHelper starts this program as another process that does something with
// a lab, and calls then when it tells of an event.
func startHelper(t *testing.T, kind, file, event string, then func(*exec.Cmd)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "helper", kind, file)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killed(cmd) })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if lines.Text() == event {
			then(cmd)
			return
		}
	}
	t.Fatalf("the helper ended before %s", event)
}

func TestCrashBeforeTheStateFile(t *testing.T) {
	name := newName(t)
	dir := filepath.Join(lab.StateDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if summary := listed(t, name); summary == nil || summary.Status != lab.LeftOver {
		t.Errorf("List says %+v, want a leftover", summary)
	}
	if err := lab.Down(name, nil); err != nil {
		t.Error(err)
	}
	nothingLeft(t, name)
}

func TestUpAfterThePartsAreGone(t *testing.T) {
	for what, destroy := range map[string]func(*lab.Lab) error{
		"processes":  func(l *lab.Lab) error { return linux.OpenCgroup(l.Cgroup).Kill() },
		"namespaces": func(l *lab.Lab) error { return linux.DeleteNetns(l.Nodes[1].Namespace) },
	} {
		t.Run(what, func(t *testing.T) {
			l := up(t, small)
			if err := destroy(l); err != nil {
				t.Fatal(err)
			}
			var r recorder
			if _, err := lab.Up(t.Context(), parse(t, l.Name, small),
				lab.Options{Events: r.add}); err != nil {
				t.Fatal(err)
			}
			if r.events[0] != "lab.LeftoversRemoved" {
				t.Errorf("events: %v, want the removal of leftovers first", r.events)
			}
		})
	}
}

func TestALabThatAnotherProcessRunsIsBusy(t *testing.T) {
	name := newName(t)
	startHelper(t, "run", writeSpec(t, name), "lab.LabUp", func(cmd *exec.Cmd) {
		_, err := lab.Up(t.Context(), parse(t, name, small), lab.Options{})
		wantError(t, err, lab.ErrBusy, name+" is being brought up, run or taken down by process ",
			"wait for it or interrupt it")
		wantError(t, lab.Down(name, nil), lab.ErrBusy)
		if summary := listed(t, name); summary == nil || summary.Status != lab.Held ||
			summary.PID != cmd.Process.Pid {
			t.Errorf("List says %+v, want it held by %d", summary, cmd.Process.Pid)
		}
		killed(cmd)
	})
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		name, status string
		body         error
		want         []string
	}{
		{name: "well", status: "0"},
		{name: "step fails", status: "5",
			want: []string{`run[1] on node b: sh -c echo problem >&2; exit $STATUS: exit status 5`}},
		{name: "body fails", status: "0", body: errors.New("from the body"),
			want: []string{"from the body"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := newName(t)
			t.Setenv("STATUS", test.status)
			var stdout, stderr strings.Builder
			ran := false
			err := lab.Run(t.Context(), parse(t, name, small),
				lab.Options{Stdout: &stdout, Stderr: &stderr},
				func(_ context.Context, l *lab.Lab) error { ran = true; return test.body })
			if test.want == nil && err != nil {
				t.Error(err)
			}
			if test.want != nil {
				wantError(t, err, test.body, test.want...)
			}
			if ran != (test.status == "0") {
				t.Errorf("body called: %v", ran)
			}
			if want := "a " + lab.StateDir + "/" + name + "/nodes/a\n"; stdout.String() != want ||
				stderr.String() != "problem\n" {
				t.Errorf("output %q and %q, want %q and the problem", stdout.String(),
					stderr.String(), want)
			}
			nothingLeft(t, name)
		})
	}
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	name := newName(t)
	spec := parse(t, name, strings.Replace(small, "echo $SEXTANT_NODE {dir}",
		"touch {dir}/started; sleep 1000", 1))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(lab.StateDir, name, "nodes/a/started")); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	err := lab.Run(ctx, spec, lab.Options{}, nil)
	wantError(t, err, context.Canceled, "stopped: context canceled")
	nothingLeft(t, name)
}
