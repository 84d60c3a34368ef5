package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
)

// starved is what a process found that may have few files open.
type starved struct {
	Timeouts, Unmade, Others int // results while files are left for the checks
	Files                    int // open at a time, at most
	None                     int // results of checks that find no file at all
	NoneUnmade               int
}

const (
	fewFiles = 64
	hungry   = 100 // jobs, each of which keeps its file for as long as its check may take
)

// Checks that wait for a server that says nothing leave files to the rest of the process, and come
// all the same. That there are none left is no result about a backend.
func TestChecksWithFewFiles(t *testing.T) {
	text, err := exec.Command(os.Args[0], "starve", "").Output()
	must(t, err)
	var got starved
	must(t, json.Unmarshal(text, &got))
	if got.Timeouts != hungry || got.Unmade+got.Others > 0 {
		t.Errorf("%+v; want %d timeouts and nothing else", got, hungry)
	}
	if got.Files > fewFiles*3/4 {
		t.Errorf("%d of %d files were open at a time", got.Files, fewFiles)
	}
	if got.None == 0 || got.NoneUnmade != got.None {
		t.Errorf("without files: %d results, %d of which say nothing of the backend", got.None,
			got.NoneUnmade)
	}
}

func starve(string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: fewFiles, Max: fewFiles}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	var jobs []health.Job
	for i := range hungry {
		j := health.Job{Check: check(config.CheckHTTP), Target: target(listener.Addr().String())}
		j.Check.Interval, j.Check.Timeout = time.Hour, 200*time.Millisecond
		j.Target.Backend = fmt.Sprint(i)
		jobs = append(jobs, j)
	}
	var found starved
	monitor := health.NewMonitor(context.Background())
	monitor.Set(jobs)
	for range jobs {
		r := <-monitor.Results()
		switch {
		case r.Unmade():
			found.Unmade++
		case r.Err != nil && r.Err.Error() == "get /health: no answer in time":
			found.Timeouts++
		default:
			found.Others++
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		found.Files = max(found.Files, len(files))
	}
	monitor.Stop()
	var taken []*os.File
	for err == nil {
		var file *os.File
		file, err = os.Open("/dev/null")
		taken = append(taken, file)
	}
	if !errors.Is(err, unix.EMFILE) {
		return err
	}
	for _, kind := range []config.CheckKind{config.CheckTCP, config.CheckHTTP, config.CheckHTTPS,
		config.CheckGRPC, config.CheckExec} {
		j := health.Job{Check: check(kind), Target: target(listener.Addr().String())}
		j.Check.Interval, j.Check.Command = time.Millisecond, []string{"/bin/true"}
		j.Target.Source = netip.MustParseAddr("127.0.0.1")
		monitor.Set([]health.Job{j})
		for range 3 {
			r := <-monitor.Results()
			if found.None++; r.Unmade() {
				found.NoneUnmade++
			} else {
				fmt.Fprintln(os.Stderr, kind, r.Err)
			}
		}
	}
	for _, file := range taken {
		file.Close()
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
