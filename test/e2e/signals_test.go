package e2e_test

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// A command that is interrupted, told to end, or whose terminal goes ends by itself, so that it can
// take down what it has set up. One that nohup started goes on without a terminal.
func TestCommandsEnd(t *testing.T) {
	const long = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"
	program := buildSextant(t)
	// Who heeds SIGHUP starts others that do, also if the tests themselves run by nohup.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for _, c := range []struct {
		name, before, loads string
		signal              os.Signal
		code                int
	}{
		{"interrupted", "", long, os.Interrupt, 1},
		{"told to end", "", long, syscall.SIGTERM, 1},
		{"without a terminal", "", long, syscall.SIGHUP, 1},
		{"without a terminal, by nohup", "trap '' HUP; ", "0.1", syscall.SIGHUP, 0},
	} {
		command := exec.Command("sh", "-c", c.before+"exec "+program+" sim hunting --servers "+
			"60000 --requests 200000 --load "+c.loads)
		said, err := command.StderrPipe()
		must(t, err)
		must(t, command.Start())
		lines := bufio.NewReader(said)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "warning") {
			t.Errorf("%s: it begins with %q, %v", c.name, line, err)
		}
		must(t, command.Process.Signal(c.signal))
		rest, _ := lines.ReadString('\n')
		_ = command.Wait() // the code tells
		if code := command.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", c.name, code, c.code, rest)
		}
	}
}
