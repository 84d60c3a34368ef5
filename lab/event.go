package lab

import (
	"fmt"
	"sync"
	"time"
)

// Event is a step of the life of a lab. Its String is a line for people.
type Event interface {
	// String says in one line what happened.
	String() string
}

// Mounted tells that a file system was missing and is mounted now. It stays.
type Mounted struct{ FileSystem, Dir string }

// LeftoversRemoved tells that the remains of an earlier lab of this name, which
// ended without being taken down, are gone.
type LeftoversRemoved struct{ Lab string }

// NetworkBuilt tells that nodes, links and routes are there.
type NetworkBuilt struct {
	Nodes, Links, Routes int
	Took                 time.Duration
}

// CommandDone tells that a node's "exec" command succeeded.
type CommandDone struct {
	Node    string
	Command string
	Took    time.Duration
}

// ProcessStarted tells that a process was started.
type ProcessStarted struct {
	Node, Process string
	PID           int
}

// ProcessReady tells that a process meets its ready condition.
type ProcessReady struct {
	Node, Process string
	Took          time.Duration // since its start
}

// LabUp tells that the lab is up.
type LabUp struct {
	Lab  string
	Took time.Duration
}

// LabDown tells that nothing of the lab is left.
type LabDown struct {
	Lab  string
	Took time.Duration
}

// String says the event in one line.
func (e Mounted) String() string {
	return fmt.Sprintf("mounted a %s file system on %s", e.FileSystem, e.Dir)
}

// String says the event in one line.
func (e LeftoversRemoved) String() string {
	return fmt.Sprintf("removed what was left of an earlier lab %s", e.Lab)
}

// String says the event in one line.
func (e NetworkBuilt) String() string {
	return fmt.Sprintf("built %d nodes, %d links, %d routes in %v", e.Nodes, e.Links, e.Routes,
		rounded(e.Took))
}

// String says the event in one line.
func (e CommandDone) String() string {
	return fmt.Sprintf("%s: ran %s in %v", e.Node, e.Command, rounded(e.Took))
}

// String says the event in one line.
func (e ProcessStarted) String() string {
	return fmt.Sprintf("%s: started %s, process %d", e.Node, e.Process, e.PID)
}

// String says the event in one line.
func (e ProcessReady) String() string {
	return fmt.Sprintf("%s: %s is ready after %v", e.Node, e.Process, rounded(e.Took))
}

// String says the event in one line.
func (e LabUp) String() string {
	return fmt.Sprintf("lab %s is up after %v", e.Lab, rounded(e.Took))
}

// String says the event in one line.
func (e LabDown) String() string {
	return fmt.Sprintf("lab %s is down after %v", e.Lab, rounded(e.Took))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// reporter passes events on, one at a time. Nil is a reporter too.
type reporter struct {
	mu   sync.Mutex
	send func(Event)
}

func newReporter(send func(Event)) *reporter { return &reporter{send: send} }

func (r *reporter) event(e Event) {
	if r.send == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(e)
}
