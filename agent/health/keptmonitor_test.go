package health_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
)

// keptJobs are jobs that keep connections to a server.
func keptJobs(c *config.Check, address string, backends ...string) (jobs []health.Job) {
	for i, backend := range backends {
		j := health.Job{Check: c, Target: target(address), Seed: uint64(i), Keep: true}
		j.Target.Backend = backend
		jobs = append(jobs, j)
	}
	return jobs
}

// results takes results until each backend has so many that are good.
func results(t *testing.T, m *health.Monitor, each int, backends ...string) {
	t.Helper()
	seen := map[string]int{}
	for left := len(backends); left > 0; {
		r := <-m.Results()
		if !m.Current(r) {
			continue
		}
		if r.Err != nil {
			t.Fatalf("backend %s: %v", r.Backend, r.Err)
		}
		if seen[r.Backend]++; seen[r.Backend] == each {
			left--
		}
	}
}

// A job's connection lasts as long as the job, and no longer: not beyond other settings, another
// target or another mark, nor when it is to keep none.
func TestMonitorClosesWhatItKept(t *testing.T) {
	for _, kind := range keptKinds {
		for what, change := range map[string]func(*health.Monitor, []health.Job, func()){
			"the backends go": func(m *health.Monitor, _ []health.Job, _ func()) { m.Set(nil) },
			"they keep none": func(m *health.Monitor, jobs []health.Job, _ func()) {
				for i := range jobs {
					jobs[i].Keep = false
				}
				m.Set(jobs)
				results(t, m, 2, "a", "b", "c") // checks go on
			},
			"another SID": func(m *health.Monitor, jobs []health.Job, _ func()) {
				for i := range jobs {
					jobs[i].Target.SID = jobs[i].Target.SID.Next()
				}
				m.Set(jobs)
			},
			"other settings": func(m *health.Monitor, jobs []health.Job, _ func()) {
				other := *jobs[0].Check
				other.Host = "other.example"
				for i := range jobs {
					jobs[i].Check = &other
				}
				m.Set(jobs)
			},
			"their path goes": func(m *health.Monitor, _ []health.Job, _ func()) {
				m.Leave(map[uint32]health.Path{0: {}})
			},
			"the monitor stops": func(m *health.Monitor, _ []health.Job, _ func()) { m.Stop() },
			"the agent ends":    func(_ *health.Monitor, _ []health.Job, end func()) { end() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			server, monitor := countedServer(t, kind), health.NewMonitor(ctx)
			c := keptCheck(kind)
			c.Interval = 50 * time.Millisecond
			jobs := keptJobs(c, server.address(), "a", "b", "c")
			monitor.Set(jobs)
			results(t, monitor, 4, "a", "b", "c")
			server.await(t, string(kind)+" before", 3)
			if opened, asked := server.opened.Load(), server.asked.Load(); opened > asked/2 {
				t.Errorf("%s: %d connections for %d checks", kind, opened, asked)
			}
			opened := server.opened.Load()
			change(monitor, jobs, cancel)
			if strings.Contains(what, "other") { // and so others are checked
				for deadline := time.Now().Add(10 * time.Second); server.opened.Load() < opened+3; {
					if <-monitor.Results(); time.Now().After(deadline) {
						t.Fatalf("%s, %s: the same connections are used", kind, what)
					}
				}
				server.await(t, string(kind)+", "+what, 3)
				monitor.Set(nil)
			}
			server.await(t, string(kind)+", "+what, 0)
			cancel()
			monitor.Stop()
			server.Close()
		}
	}
}

// keptMany is what a process found that may have few files open.
type keptMany struct {
	Good, Other int // results
	Exec        int // good ones of checks that need more files
	Most, Least int // open at a time, when all were checked once
}

// More backends than there are files have their checks all the same, those of commands too, and the
// files that are left for checks are used by connections that are kept.
func TestKeptLeaveFiles(t *testing.T) {
	server := countedServer(t, config.CheckHTTP)
	command := exec.Command(os.Args[0], "keepmany", server.address())
	command.Stderr = os.Stderr
	text, err := command.Output()
	must(t, err)
	var got keptMany
	must(t, json.Unmarshal(text, &got))
	if got.Other > 0 || got.Exec < 3 || got.Most > fewFiles*3/4 || got.Least < fewFiles/4 {
		t.Errorf("%+v of %d files", got, fewFiles)
	}
	// How many serve another check depends on how many are in use at once, on a busy machine all.
	t.Logf("%+v; %d connections", got, server.opened.Load())
}

func keepMany(address string) error {
	limit := unix.Rlimit{Cur: fewFiles, Max: fewFiles}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	var backends []string
	for i := range hungry {
		backends = append(backends, fmt.Sprint(i))
	}
	jobs := keptJobs(keptCheck(config.CheckHTTP), address, backends...)
	run := health.Job{Check: check(config.CheckExec), Target: target(address)}
	run.Check.Command = []string{"/bin/true"}
	jobs = append(jobs, run)
	monitor := health.NewMonitor(context.Background())
	monitor.Set(jobs)
	found := keptMany{Least: fewFiles}
	for n := 0; n < 6*len(jobs) || found.Exec < 3 && n < 60*len(jobs); n++ {
		r := <-monitor.Results()
		switch {
		case r.Err != nil:
			fmt.Fprintln(os.Stderr, r.Backend, r.Err)
			found.Other++
		case r.Backend == run.Target.Backend:
			found.Exec++
		default:
			found.Good++
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		if found.Most = max(found.Most, len(files)); n > 2*len(jobs) {
			found.Least = min(found.Least, len(files))
		}
	}
	monitor.Stop()
	return json.NewEncoder(os.Stdout).Encode(found)
}
