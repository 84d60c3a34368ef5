package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sextant/linux"
)

// starter starts what runs on a node.
type starter struct {
	lab      *Lab
	node     *Node
	reports  *reporter
	patience time.Duration // until a process must be ready
	settle   time.Duration // that a process without a ready condition must live
}

// start writes the node's files, runs its commands and starts its processes,
// one after the other.
func (s *starter) start(ctx context.Context, spec NodeSpec) error {
	for _, file := range spec.Files {
		if err := s.writeFile(file); err != nil {
			return err
		}
	}
	for _, command := range spec.Exec {
		if err := s.exec(ctx, command); err != nil {
			return err
		}
	}
	for _, process := range spec.Processes {
		if err := s.process(ctx, process); err != nil {
			return err
		}
	}
	return nil
}

func (s *starter) writeFile(file File) error {
	path := filepath.Join(s.node.Dir, file.Name)
	mode := os.FileMode(0o644)
	if file.Secret || file.Name == nodeFile { // which may hold the cluster's secret
		mode = 0o600
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return linux.Failed(err, "create %s", filepath.Dir(path))
	}
	return linux.Failed(os.WriteFile(path, []byte(file.Content), mode), "write %s", path)
}

// exec runs a command of the node to its end.
func (s *starter) exec(ctx context.Context, command Command) error {
	began := time.Now()
	log, err := openLog(s.lab.Log(s.node.Name, "exec"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.lab.command(s.node, command)
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.lab.run(ctx, s.node, cmd); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w%s", command, err, tail(log.Name()))
	}
	s.reports.event(CommandDone{s.node.Name, command.String(), time.Since(began)})
	return nil
}

// restartLoop starts its arguments again whenever they end. It needs no
// process of ours, so it outlives "sextant lab up".
const restartLoop = `while :; do "$@"; echo "ended with status $?, starting it again" >&2; sleep 0.2; done`

// process starts a process and waits until it is ready.
func (s *starter) process(ctx context.Context, spec ProcessSpec) error {
	began := time.Now()
	log, err := openLog(s.lab.Log(s.node.Name, spec.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	command := spec.Command
	if spec.Restart {
		command = Command{Args: append([]string{"/bin/sh", "-c", restartLoop, "sh"},
			command.argv()...)}
	}
	cmd := s.lab.command(s.node, command)
	cmd.Env = append(cmd.Env, spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.lab.start(s.node, cmd); err != nil {
		return fmt.Errorf("process %s: %w", spec.Name, err)
	}
	s.reports.event(ProcessStarted{s.node.Name, spec.Name, cmd.Process.Pid})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := s.awaitReady(ctx, spec.Ready, ended); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("process %s: %w%s", spec.Name, err, tail(log.Name()))
	}
	s.reports.event(ProcessReady{s.node.Name, spec.Name, time.Since(began)})
	return nil
}

// command prepares a command of a node: in its directory, with its
// environment, in a session of its own, which Ctrl-C on our terminal spares.
func (l *Lab) command(node *Node, command Command) *exec.Cmd {
	argv := command.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = node.Dir
	cmd.Env = l.environ(node)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second // for output that a child in the background keeps open
	return cmd
}

// environ is the caller's environment and what tells a process where it is.
func (l *Lab) environ(node *Node) []string {
	env := append(os.Environ(),
		"SEXTANT_LAB="+l.Name,
		"SEXTANT_NODE="+node.Name,
		"SEXTANT_DIR="+node.Dir,
		"SEXTANT_BPF="+node.BPF,
		"SEXTANT_CGROUP="+node.Cgroup,
	)
	if node.Socket != "" {
		env = append(env, "SEXTANT_SOCKET="+node.Socket)
	}
	return env
}

// start starts a command in the namespace and the cgroup of a node.
func (l *Lab) start(node *Node, cmd *exec.Cmd) error {
	ns, err := linux.OpenNetns(node.Namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	return linux.Start(cmd, ns, linux.OpenCgroup(node.Cgroup))
}

// run starts a command and waits for its end. The end of the context kills it
// with all processes of its session.
func (l *Lab) run(ctx context.Context, node *Node, cmd *exec.Cmd) error {
	if err := l.start(node, cmd); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it fails only if they ended by themselves
		<-ended
		return context.Cause(ctx)
	}
}
