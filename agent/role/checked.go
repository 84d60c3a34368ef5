package role

import (
	"log/slog"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/config"
)

// Checked is a backend and the history of its checks.
type Checked struct {
	Check           *config.Check
	State           health.State
	Since           time.Time // of the status
	last            health.Result
	Passive         health.State // what the host's own counters say
	Complaint       error        // the latest of these; nil: none
	succeeded, fell uint64       // checks
	durations       api.Durations
}

// RulesOf translates a configured check.
func RulesOf(c *config.Check) health.Rules {
	return health.Rules{Rise: c.Rise, Fall: c.Fall, StartDown: c.Startup == config.StartDown}
}

// Opinion is what is thought of a backend, and whether the latest results speak against it.
type Opinion struct {
	Status          health.Status
	wavers, signals bool
}

// Opinion is what is thought of the backend now.
func (c *Checked) Opinion() Opinion {
	return Opinion{c.Status(), c.State.Run > 0, c.Passive.Run > 0}
}

// Take notes a result, and reports whether it changes the status.
func (c *Checked) Take(r health.Result) bool {
	c.durations.Add(r.Took)
	if c.last = r; r.Err == nil {
		c.succeeded++
	} else {
		c.fell++
	}
	before := c.Status()
	if c.State = c.State.After(r.Err == nil, RulesOf(c.Check)); c.Status() == before {
		return false
	}
	c.Since = r.At
	return true
}

// ReasonOf is the text of an error, "" for nil.
func ReasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// View is what the API tells of the checks.
func (c *Checked) View() *api.Health {
	view := &api.Health{
		Status: c.Status().String(), Since: c.Since,
		SucceededChecks: c.succeeded, FailedChecks: c.fell, LastError: ReasonOf(c.last.Err),
		Durations: c.durations,
	}
	if c.Passive.Status == health.Failing && c.Complaint != nil {
		view.LastError = c.Complaint.Error()
	}
	if last := c.last; !last.At.IsZero() {
		view.LastCheck, view.LastDurationSeconds = &last.At, last.Took.Seconds()
	}
	return view
}

// Unmade counts the checks that this machine could not make, and says so from time to time.
type Unmade struct {
	Log   *slog.Logger
	count int
	told  time.Time
}

const unmadeInterval = time.Minute

// Unmade says whether a result is that of such a check, from which nothing follows.
func (u *Unmade) Unmade(r health.Result) bool {
	if !r.Unmade() {
		return false
	}
	if u.count++; time.Since(u.told) >= unmadeInterval {
		u.Log.Warn("backends are not checked for want of something on this machine, and stay what "+
			"they were", "error", r.Err, "checks", u.count)
		u.count, u.told = 0, time.Now()
	}
	return true
}

// Status is what checks and passive signals say together.
func (c *Checked) Status() health.Status {
	if c.Passive.Status == health.Failing {
		return health.Failing
	}
	return c.State.Status
}
