package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) labExec() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec LAB NODE [-- COMMAND...]",
		Short: "Run a command on a node of a lab; a shell if none is given",
		Long: `Run a command on a node of a lab, with its network, its files and the agent's socket; a shell if no command is given.
The exit code is that of the command.`,
		Example: `  sextant lab exec quickstart edge -- sextant status
  sextant lab exec quickstart client -- curl "http://[2001:db8:80::80]/"`,
		Annotations:       seeAlso("sextant lab up", "sextant lab logs"),
		Args:              atLeast("LAB", "NODE"),
		ValidArgsFunction: a.completeNodes,
		RunE: func(_ *cobra.Command, args []string) error {
			l, node, err := nodeOf(args[0], args[1])
			if err != nil {
				return err
			}
			command, err := nodeCommand(args[2:], a.getenv("SHELL"))
			if err != nil {
				return err
			}
			command.Stdin = rawInput(a.stdin)
			command.Stdout, command.Stderr = raw(a.stdout), raw(a.stderr)
			return exitOf(l.Exec(node.Name, command))
		},
	}
	// What follows the node belongs to the command there, flags too.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// atLeast wants the named arguments and takes more.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return takes(names...)(cmd, args[:min(len(args), len(names))])
	}
}

// nodeCommand finds the program to run. The name sextant means this program, installed or not.
func nodeCommand(words []string, shell string) (*exec.Cmd, error) {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{cmp.Or(shell, "/bin/sh")}
	}
	if words[0] == "sextant" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the path of this program: %w; give it instead of sextant",
				err)
		}
		words = slices.Concat([]string{self}, words[1:])
	}
	return exec.Command(words[0], words[1:]...), nil
}

// exitOf passes the exit code of a command on.
func exitOf(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := exit.ExitCode(); code > 0 {
			return silentExit(code)
		}
		return silentExit(exitFailed) // by a signal
	}
	return err
}

func (a *app) labLogs() *cobra.Command {
	return &cobra.Command{
		Use: "logs LAB NODE [PROCESS]", Short: "Print what a process of a node has written",
		Example:           "  sextant lab logs quickstart edge sextant",
		Annotations:       seeAlso("sextant lab exec"),
		Args:              takes("LAB", "NODE", "[PROCESS]"),
		ValidArgsFunction: a.completeNodes,
		RunE: func(_ *cobra.Command, args []string) error {
			l, node, err := nodeOf(args[0], args[1])
			if err != nil {
				return err
			}
			processes := node.Processes
			if len(args) > 2 {
				if !slices.Contains(processes, args[2]) {
					return notFoundf("there is no process %q; known: %s", args[2],
						strings.Join(processes, ", "))
				}
				processes = args[2:]
			}
			for _, p := range processes {
				if err := a.printLog(l.Log(node.Name, p)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) printLog(file string) error {
	log, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read log: %w; it is there when the process has begun", err)
	}
	defer log.Close()
	_, err = io.Copy(a.stdout, log)
	return err
}
