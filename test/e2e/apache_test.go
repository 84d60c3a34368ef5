package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/examples"
	"sextant/lab"
)

// Apache's scoreboard is what the acceptance policy calls busy, and no longer when the workers are
// done.
func TestApacheFeedsThePolicy(t *testing.T) {
	needsRoot(t)
	if _, err := exec.LookPath("apache2"); err != nil {
		t.Fatalf("%v: install the Debian package apache2, as \"make test\" does", err)
	}
	spec, err := lab.Parse("apache.yaml", examples.Apache)
	if err != nil {
		t.Fatal(err)
	}
	spec.Name = newName()
	err = lab.Run(t.Context(), spec, lab.Options{}, func(ctx context.Context, l *lab.Lab) error {
		if err := becomes(ctx, l,
			0); err != nil { // who asked whether it is up may still be being served
			return err
		}
		const requests = 3
		ended := make(chan error, requests)
		for range requests {
			go func() {
				var output bytes.Buffer
				cmd := exec.CommandContext(ctx, "curl", "--silent", "--show-error", "--fail",
					"http://[2001:db8:80::80]/burn?loops=4000&ms=200")
				cmd.Stdout, cmd.Stderr = &output, &output
				err := l.Exec("client", cmd)
				if err != nil || output.String() != "done\n" {
					err = fmt.Errorf("answer %q: %w", output.String(), err)
				}
				ended <- err
			}()
		}
		if err := becomes(ctx, l, requests); err != nil {
			return err
		}
		for range requests {
			if err := <-ended; err != nil {
				return err
			}
		}
		return becomes(ctx, l, 0)
	})
	if err != nil {
		t.Error(err)
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/cpu/sextant-web*")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	}
}

// becomes waits until so many workers are busy.
func becomes(ctx context.Context, l *lab.Lab, want int) error {
	for range 300 {
		busy, err := busyWorkers(ctx, l)
		if err != nil || busy == want {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("there were never %d busy workers in half a minute", want)
}

// busyWorkers asks all hosts.
func busyWorkers(ctx context.Context, l *lab.Lab) (sum int, err error) {
	for i := range 12 {
		n, err := l.Node(fmt.Sprintf("web%d", i+1))
		if err != nil {
			return 0, err
		}
		services, err := api.NewClient(n.Socket).Services(ctx, "web", api.Host)
		if err != nil {
			return 0, err
		}
		sum += services[0].Host.Busy
	}
	return sum, nil
}
