package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
)

// Exit codes, as scripts know them.
const (
	exitOK          = 0
	exitFailed      = 1 // of diff: there are differences
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnreachable = 5
	exitTrouble     = 2 // of diff: there is no comparison
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usageErrorf(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// notFoundf is an error about what is not there.
func notFoundf(format string, args ...any) error {
	return coded{fmt.Errorf(format, args...), exitNotFound}
}

// silentExit ends with a code when all is said.
type silentExit int

func (silentExit) Error() string { return "exit" }

// failedIf is the exit code of what was found to be wrong, and shown.
func failedIf(wrong bool) error {
	if wrong {
		return silentExit(exitFailed)
	}
	return nil
}

// exitCode tells scripts what kind of error it was.
func exitCode(err error) int {
	var silent silentExit
	var special coded
	var usage usageError
	var refusal *api.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &special):
		return special.code
	case errors.As(err, &silent):
		return int(silent)
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, api.ErrUnreachable):
		return exitUnreachable
	case errors.As(err, &refusal) && refusal.Code == api.NotFound:
		return exitNotFound
	case errors.As(err, &refusal) && (refusal.Code == api.Conflict ||
		refusal.Code == api.Unauthorized || refusal.Code == api.Forbidden):
		return exitConflict
	default:
		return exitFailed
	}
}

// report writes an error as "sextant: NOUN VERB NAME: what is wrong; what would mend it".
func (e *env) report(cmd *cobra.Command, err error) {
	var silent silentExit
	if err == nil || errors.As(err, &silent) || errors.Is(err, context.Canceled) {
		return
	}
	var ofNode config.Errors
	var ofLab lab.Faults
	if errors.As(err, &ofNode) || errors.As(err, &ofLab) {
		// The places come first in their lines, for editors.
		e.say("%s", err)
		err = errors.New("the file has faults; each is listed above with a hint")
	}
	text := err.Error()
	if _, ok := errors.AsType[usageError](err); ok {
		text += "; see: " + cmd.CommandPath() + " --help"
	}
	e.say("sextant: %s%s", subject(cmd), text)
}

// subject is the command and the names that it was given.
func subject(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	words := strings.Fields(cmd.CommandPath())[1:]
	if !cmd.HasSubCommands() {
		args := cmd.Flags().Args()
		words = append(words, args[:min(len(args), 2)]...)
	}
	return strings.Join(words, " ") + ": "
}
