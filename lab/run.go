package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Run brings a lab up, runs the steps of its file and then body, which may be
// nil, and takes the lab down whatever happens. Only a machine that stops or a
// SIGKILL leaves parts of it, which the next Up or Run removes.
func Run(ctx context.Context, spec *Spec, opts Options,
	body func(context.Context, *Lab) error) (err error) {
	began := time.Now()
	h, err := bringUp(ctx, spec, opts)
	if err != nil {
		return err
	}
	defer h.lock.release()
	defer func() { err = errors.Join(err, h.remove()) }()
	h.reports.event(LabUp{spec.Name, time.Since(began)})
	for i, step := range spec.Run {
		if err := h.step(ctx, step); err != nil {
			return stopped(ctx, fmt.Errorf("run[%d] on node %s: %s: %w", i, step.Node, step.Command,
				err))
		}
	}
	if body == nil {
		return nil
	}
	return body(ctx, h.lab)
}

func (h *held) step(ctx context.Context, step Step) error {
	node, err := h.lab.Node(step.Node)
	if err != nil {
		return err
	}
	cmd := h.lab.command(node, step.Command.rewrite(wordsOf(h.lab, node, h.opts.Self)))
	cmd.Stdout, cmd.Stderr = h.opts.Stdout, h.opts.Stderr
	return h.lab.run(ctx, node, cmd)
}

// Exec runs a command inside a node, with the input and output that the
// command has, and waits for its end. Without an environment of its own it
// gets the caller's and the SEXTANT_ variables that tell where it is. It ends
// with the lab at the latest.
func (l *Lab) Exec(node string, cmd *exec.Cmd) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	if cmd.Env == nil {
		cmd.Env = l.environ(n)
	}
	if err := l.start(n, cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
