package lab

import (
	"errors"
	"net/netip"
	"strings"
)

// Ready says when a process is ready.
type Ready struct {
	Kind   ReadyKind
	Target string // address and port, path, or shell command
}

// ReadyKind is how readiness shows.
type ReadyKind string

// The ways in which readiness shows. The target is looked at from inside the
// node.
const (
	ReadyAtOnce ReadyKind = ""     // the process runs
	ReadyTCP    ReadyKind = "tcp"  // a TCP connection to the address and port succeeds
	ReadyUnix   ReadyKind = "unix" // a connection to the Unix socket succeeds
	ReadyFile   ReadyKind = "file" // the file exists
	ReadyExec   ReadyKind = "exec" // the shell command succeeds
	// HTTP over the Unix socket is answered; an agent listens before its programs are in place
	ReadyHTTP ReadyKind = "http"
)

var errReady = errors.New(
	"write tcp://[ADDRESS]:PORT, unix:PATH, http:PATH, file:PATH or exec:COMMAND")

// parseReady reads a ready condition as it stands in a file. An empty one is
// ReadyAtOnce.
func parseReady(text string) (Ready, error) {
	if text == "" {
		return Ready{}, nil
	}
	kind, target, _ := strings.Cut(text, ":")
	ready := Ready{ReadyKind(kind), strings.TrimSpace(target)}
	switch ready.Kind {
	case ReadyTCP:
		ready.Target = strings.TrimPrefix(ready.Target, "//")
		if _, err := netip.ParseAddrPort(ready.Target); err != nil {
			return Ready{}, errReady
		}
	case ReadyUnix, ReadyHTTP, ReadyFile, ReadyExec:
		if ready.Target == "" {
			return Ready{}, errReady
		}
	default:
		return Ready{}, errReady
	}
	return ready, nil
}

// String writes the condition as in the file.
func (r Ready) String() string {
	switch r.Kind {
	case ReadyAtOnce:
		return "at once"
	case ReadyTCP:
		return "tcp://" + r.Target
	}
	return string(r.Kind) + ":" + r.Target
}
