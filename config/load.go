package config

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// LoadKind says what knows how busy a server is.
type LoadKind string

// The kinds.
const (
	// LoadConnections, the default, counts the service's open connections in the kernel. It needs
	// nothing of the server.
	LoadConnections LoadKind = ""
	// LoadApache asks Apache's status page for its busy workers.
	LoadApache LoadKind = "apache"
	// LoadMemory reads a number that the application keeps in a file of memory.
	LoadMemory LoadKind = "memory"
	// LoadPressure is how much of the time tasks waited for a CPU, in percent (Linux's pressure
	// stall information).
	LoadPressure LoadKind = "pressure"
	// LoadQueue is how many connections wait on the listener for being accepted. The kernel knows
	// it.
	LoadQueue LoadKind = "accept-queue"
)

const connections = "connections" // how LoadConnections is written

// Load is where an acceptance policy learns how busy the server is.
type Load struct {
	Kind LoadKind
	// Target is, for apache: the URL of the status page for programs,
	// "http://[::1]/server-status?auto"; memory: the path of the file; pressure: the directory of a
	// cgroup, "" for the whole machine.
	Target string
}

// ParseLoad reads "connections", "accept-queue", "pressure" or "pressure:" and the directory of a
// cgroup, "memory:" and a path, or "apache:" and a URL.
func ParseLoad(text string) (Load, error) {
	if text == connections {
		return Load{}, nil
	}
	kind, target, has := strings.Cut(text, ":")
	l := Load{Kind: LoadKind(kind), Target: target}
	switch l.Kind {
	case LoadApache:
		if u, err := url.Parse(target); err != nil || u.Scheme != "http" || u.Host == "" {
			return Load{}, wrongLoad(text, "write apache:http://ADDRESS/server-status?auto")
		}
		return l, nil
	case LoadMemory:
		if !path.IsAbs(target) {
			return Load{}, wrongLoad(text, "write memory: and the absolute path of the file, "+
				"like memory:/dev/shm/web.load")
		}
		return l, nil
	case LoadPressure:
		if has && !path.IsAbs(target) {
			return Load{}, wrongLoad(text,
				"write pressure, or pressure: and the directory of a cgroup")
		}
		return l, nil
	case LoadQueue:
		if !has {
			return l, nil
		}
	}
	return Load{}, invalid(fmt.Sprintf("unknown load %q", text), "use "+connections+
		", accept-queue, pressure, memory:FILE, or apache: and the URL of its status page")
}

func wrongLoad(text, mend string) error {
	return invalid(fmt.Sprintf("load %q is not complete", text), mend)
}

// String writes the load as ParseLoad reads it.
func (l Load) String() string {
	switch {
	case l.Kind == LoadConnections:
		return connections
	case l.Target == "":
		return string(l.Kind)
	}
	return string(l.Kind) + ":" + l.Target
}
