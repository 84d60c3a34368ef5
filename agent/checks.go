package agent

import (
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/config"
	"sextant/packet/flow"
)

// checks is what the edge knows from checking its backends.
type checks struct {
	*core
	services func() []edgeService // that run
	changed  func(service string) // the word of its checks did
	paths    *health.Paths        // nil: there never was a check
	monitor  *health.Monitor
	signals  *health.Monitor // passive ones
	backends map[health.Key]*checked
	panics   map[string]bool // services whose checks are not believed
	stale    bool            // backends have come or gone since check
	warning  string          // why nobody is checked; "": they are
}

// checked is a backend and the history of its checks.
type checked struct {
	check           *config.Check
	state           health.State
	since           time.Time // of the status
	last            health.Result
	passive         health.State // what the host's own counters say
	complaint       error        // the latest of these; nil: none
	succeeded, fell uint64       // checks
	durations       api.Durations
}

func newChecks(c *core, services func() []edgeService, changed func(service string)) *checks {
	k := &checks{core: c, services: services, changed: changed,
		monitor: health.NewMonitor(c.life), signals: newSignals(c.life),
		backends: map[health.Key]*checked{}, panics: map[string]bool{}}
	c.failing = append(c.failing, k.failing)
	return k
}

func rulesOf(c *config.Check) health.Rules {
	return health.Rules{Rise: c.Rise, Fall: c.Fall, StartDown: c.Startup == config.StartDown}
}

// opinion says whether the checks let a backend be used, and whether the latest result speaks
// against that. What an earlier agent found failing is so until a check says otherwise.
func (k *checks) opinion(s *config.Service, b config.Backend) (usable, wavers bool) {
	if s.Check == nil {
		return true, false
	}
	usable = k.health(s, b.Name).Usable(rulesOf(s.Check))
	c := k.backends[health.Key{Service: s.Name, Backend: b.Name}]
	if c == nil {
		return usable, false
	}
	passes := c.passive.Status != health.Failing
	if usable && passes {
		return true, c.state.Run > 0 || c.passive.Run > 0
	}
	return false, (usable || c.state.Run > 0) && (passes || c.passive.Run > 0)
}

// health is what is known of a backend of a service that has a check.
func (k *checks) health(s *config.Service, backend string) health.State {
	key := health.Key{Service: s.Name, Backend: backend}
	if c := k.backends[key]; c != nil {
		return c.state
	}
	if slices.Contains(k.store.kept.Failing, key) {
		return health.State{Status: health.Failing}
	}
	return health.State{}
}

// check makes the backends of the running services those that are checked. A failure is no reason
// to stop: a check that does not run finds nobody failing.
func (k *checks) check() {
	var jobs, asked []health.Job
	var ways []health.Path
	for _, service := range k.services() {
		s := &service.Service
		for i, j := range k.jobs(s) {
			jobs = append(jobs, j)
			if passive, wanted := passiveJob(s, s.Backends[i], j); wanted {
				asked = append(asked, passive)
			}
			ways = append(ways, health.Path{VIP: j.Target.Address.Addr(), SID: j.Target.SID})
		}
	}
	k.warning, k.stale = "", false
	if err := k.setPaths(ways); err != nil {
		k.warning = "backends are not checked: " + err.Error()
		k.options.Log.Warn("backends are not checked", "error", err)
		jobs = nil
	}
	k.watchJobs(jobs)
	k.signals.Set(asked)
	k.notePanics()
}

func (k *checks) setPaths(ways []health.Path) (err error) {
	if k.paths == nil {
		if k.paths, err = health.OpenPaths(); err != nil {
			k.paths = nil
			return err
		}
	}
	device := ""
	if len(ways) > 0 {
		device = checkDevice(k.node.Edge.Interfaces)
	}
	return k.paths.Set(device, ways)
}

// checkDevice prefers an interface that leads into the domain.
func checkDevice(interfaces []config.EdgeInterface) string {
	for _, i := range interfaces {
		if i.Side != config.External {
			return i.Name
		}
	}
	return interfaces[0].Name
}

// jobs are the checks of a service.
func (k *checks) jobs(s *config.Service) []health.Job {
	if s.Check == nil {
		return nil
	}
	source := s.Check.Source
	if !source.IsValid() && s.VIP.Is6() {
		source = k.node.Edge.Source
	}
	jobs := make([]health.Job, len(s.Backends))
	for i, b := range s.Backends {
		jobs[i] = health.Job{
			Check: s.Check,
			Seed:  flow.SipHash13(k.node.Secret, []byte(k.node.Name+" "+s.Name+" "+b.Name)),
			Target: health.Target{
				Service: s.Name, Backend: b.Name, Address: s.Check.Target(s.Endpoint),
				SID: s.Check.SID(b.SID), Source: source,
			},
		}
	}
	return jobs
}

// watchJobs starts and ends checks, and forgets backends that are no longer checked.
func (k *checks) watchJobs(jobs []health.Job) {
	known := k.backends
	k.backends = map[health.Key]*checked{}
	for i := range jobs {
		j := &jobs[i]
		j.Target.Mark = k.paths.Mark(j.Target.SID)
		key := health.Key{Service: j.Target.Service, Backend: j.Target.Backend}
		c := known[key]
		if c == nil {
			c = &checked{since: time.Now()}
			if slices.Contains(k.store.kept.Failing, key) {
				c.state.Status = health.Failing
			}
		}
		if c.check = j.Check; c.check.Passive == nil {
			c.passive, c.complaint = health.State{}, nil
		}
		k.backends[key] = c
	}
	k.monitor.Set(jobs)
}

// checkEnded takes one result.
func (k *checks) checkEnded(r health.Result) {
	c := k.backends[r.Key]
	if c == nil || !k.monitor.Current(r) {
		return
	}
	before := c.opinion()
	c.take(r)
	k.reconsider(r, c, before)
}

// reconsider brings the service's chains up to date if a result has changed what is thought of a
// backend.
func (k *checks) reconsider(r health.Result, c *checked, before opinion) {
	now := c.opinion()
	if now.status != before.status {
		k.tell(api.Event{
			Service: r.Service, Backend: r.Backend, Status: now.status.String(),
			Reason: reasonOf(r.Err),
		})
		k.core.keepFailing()
	}
	if now != before {
		k.changed(r.Service)
	}
}

// opinion is what is thought of a backend, and whether the latest results speak against it.
type opinion struct {
	status          health.Status
	wavers, signals bool
}

func (c *checked) opinion() opinion {
	return opinion{c.status(), c.state.Run > 0, c.passive.Run > 0}
}

// take notes a result, and reports whether it changes the status.
func (c *checked) take(r health.Result) bool {
	c.durations.Add(r.Took)
	if c.last = r; r.Err == nil {
		c.succeeded++
	} else {
		c.fell++
	}
	before := c.status()
	if c.state = c.state.After(r.Err == nil, rulesOf(c.check)); c.status() == before {
		return false
	}
	c.since = r.At
	return true
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// failing adds the backends that fail to a list.
func (k *checks) failing(list []health.Key) []health.Key {
	for key, c := range k.backends {
		if c.status() == health.Failing {
			list = append(list, key)
		}
	}
	return list
}

// healthView is what the API tells of a backend's checks; nil if it has none.
func (k *checks) healthView(s *edgeService, backend string) *api.Health {
	c := k.backends[health.Key{Service: s.Name, Backend: backend}]
	if s.Check == nil || c == nil {
		return nil
	}
	return c.view()
}

func (c *checked) view() *api.Health {
	view := &api.Health{
		Status: c.status().String(), Since: c.since,
		SucceededChecks: c.succeeded, FailedChecks: c.fell, LastError: reasonOf(c.last.Err),
		Durations: c.durations,
	}
	if c.passive.Status == health.Failing && c.complaint != nil {
		view.LastError = c.complaint.Error()
	}
	if !c.last.At.IsZero() {
		view.LastCheck, view.LastDurationSeconds = &c.last.At, c.last.Took.Seconds()
	}
	return view
}
