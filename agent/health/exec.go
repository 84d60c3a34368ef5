package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/config"
)

// probeExec runs the command in a process group of its own, so that no child of it outlives the
// check, unless it leaves the group. The command finds what to check in its environment, and is to
// give the mark to its sockets (SO_MARK), or its packets go another way than a client's.
func probeExec(ctx context.Context, c *config.Check, t Target) error {
	command := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	command.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SEXTANT_SERVICE=" + t.Service, "SEXTANT_BACKEND=" + t.Backend,
		"SEXTANT_VIP=" + t.Address.Addr().String(),
		fmt.Sprintf("SEXTANT_PORT=%d", t.Address.Port()),
		"SEXTANT_SID=" + t.SID.String(), fmt.Sprintf("SEXTANT_MARK=%d", t.Mark),
	}
	if t.Source.IsValid() {
		command.Env = append(command.Env, "SEXTANT_SOURCE="+t.Source.String())
	}
	output := &tail{}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = kill
	command.WaitDelay = 100 * time.Millisecond
	err := command.Start()
	if err == nil {
		// Until it is waited for, no other group can get its number.
		awaitEnd(command.Process.Pid)
		_ = kill() // those that it left behind, if any
		err = command.Wait()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("run %s: %w", c.Command[0], errTimeout)
	case errors.As(err, &exit):
		return fmt.Errorf("run %s: %w: %s", c.Command[0], err, output.lastLine())
	}
	return fmt.Errorf("run %s: %w", c.Command[0], err)
}

// awaitEnd returns when a child has ended, which stays to be waited for.
func awaitEnd(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

const maxTail = 512

// Write keeps the last bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

func (t *tail) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(t.text), []byte("\n"))
	return strings.ToValidUTF8(string(lines[len(lines)-1]), "?")
}
