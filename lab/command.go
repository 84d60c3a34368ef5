package lab

import (
	"errors"
	"strings"
)

// Command is what a node runs: either text for the shell (/bin/sh -c) or a
// program with its arguments, which no shell sees.
type Command struct {
	Shell string
	Args  []string // used if Shell is ""
}

// UnmarshalYAML reads text as a shell command and a list as a program with its
// arguments.
func (c *Command) UnmarshalYAML(decode func(any) error) error {
	if decode(&c.Shell) == nil {
		return nil
	}
	err := decode(&c.Args)
	if at, ok := errors.AsType[located](err); ok {
		return &valueError{at, "a command is wanted here",
			`write it as text, or as a list of words: [ping, -c1, "fd00::1"]`}
	}
	return err
}

// empty says that there is nothing to run.
func (c Command) empty() bool {
	return strings.TrimSpace(c.Shell) == "" && (len(c.Args) == 0 || c.Args[0] == "")
}

// argv is the program to start and its arguments.
func (c Command) argv() []string {
	if c.Shell != "" {
		return []string{"/bin/sh", "-c", c.Shell}
	}
	return c.Args
}

// String writes the command on one line, for people.
func (c Command) String() string {
	if c.Shell != "" {
		return strings.TrimSpace(c.Shell)
	}
	return strings.Join(c.Args, " ")
}

// rewrite returns the command with f applied to all its strings.
func (c Command) rewrite(f func(string) string) Command {
	return Command{Shell: f(c.Shell), Args: rewriteAll(c.Args, f)}
}
