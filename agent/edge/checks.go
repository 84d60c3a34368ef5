package edge

import (
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/config"
	"sextant/packet/flow"
)

// checks is what the edge knows from checking its backends.
type checks struct {
	*role.Core
	services func() []Service        // that run
	changed  func(services []string) // the word of their checks did
	paths    *health.Paths           // nil: there never was a check
	monitor  *health.Monitor
	signals  *signals // passive ones
	backends map[health.Key]*role.Checked
	panics   map[string]bool // services whose checks are not believed
	stale    bool            // backends have come or gone since check
	warning  string          // why no backend is checked; "": they are
	unmade   role.Unmade
}

func newChecks(c *role.Core, services func() []Service, changed func(services []string)) *checks {
	k := &checks{Core: c, services: services, changed: changed,
		monitor: health.NewMonitor(c.Life), signals: newSignals(c.Life),
		backends: map[health.Key]*role.Checked{}, panics: map[string]bool{},
		unmade: role.Unmade{Log: c.Log}}
	c.Failing = append(c.Failing, k.failing)
	return k
}

// opinion says whether the checks let a backend be used, and whether the latest result speaks
// against that. What an earlier agent found failing is so until a check says otherwise.
func (k *checks) opinion(s *config.Service, b config.Backend) (usable, wavers bool) {
	if s.Check == nil {
		return true, false
	}
	usable = k.health(s, b.Name).Usable(role.RulesOf(s.Check))
	c := k.backends[health.Key{Service: s.Name, Backend: b.Name}]
	if c == nil {
		return usable, false
	}
	passes := c.Passive.Status != health.Failing
	if usable && passes {
		return true, c.State.Run > 0 || c.Passive.Run > 0
	}
	return false, (usable || c.State.Run > 0) && (passes || c.Passive.Run > 0)
}

// health is what is known of a backend of a service that has a check.
func (k *checks) health(s *config.Service, backend string) health.State {
	key := health.Key{Service: s.Name, Backend: backend}
	if c := k.backends[key]; c != nil {
		return c.State
	}
	if slices.Contains(k.Store.Kept.Failing, key) {
		return health.State{Status: health.Failing}
	}
	return health.State{}
}

// check makes the backends of the running services those that are checked. A failure is no reason
// to stop: a check that does not run finds nobody failing. It leaves stale true.
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
			ways = append(ways, wayOf(&j))
		}
	}
	k.warning, k.stale = "", false
	if err := k.setPaths(ways); err != nil {
		k.warning = "backends are not checked: " + err.Error()
		k.Log.Warn("backends are not checked; tried again soon", "error", err)
		jobs, k.stale = nil, true
	}
	k.watchJobs(jobs)
	k.signals.ask(asked, k.Node.Secret)
	k.notePanics()
}

func wayOf(j *health.Job) health.Path {
	return health.Path{VIP: j.Target.Address.Addr(), SID: j.Target.SID}
}

func (k *checks) setPaths(ways []health.Path) (err error) {
	if k.paths == nil {
		if k.paths, err = health.OpenPaths(); err != nil {
			k.paths = nil
			return err
		}
		k.paths.Leave = k.monitor.Leave
	}
	if len(ways) == 0 {
		return k.paths.Set("", netip.Addr{}, nil)
	}
	e := k.Node.Edge
	return k.paths.Set(checkDevice(e.Interfaces), e.Source, ways)
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
		source = k.Node.Edge.Source
	}
	jobs := make([]health.Job, len(s.Backends))
	for i, b := range s.Backends {
		jobs[i] = health.Job{
			Check: s.Check,
			Seed:  flow.SipHash13(k.Node.Secret, []byte(k.Node.Name+" "+s.Name+" "+b.Name)),
			// one that drains is to have no connections
			Keep: s.Check.Reuse && b.State == config.Up,
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
	known, failing := k.backends, map[health.Key]bool{}
	for _, key := range k.Store.Kept.Failing {
		failing[key] = true
	}
	k.backends = make(map[health.Key]*role.Checked, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		j.Target.Mark = k.paths.Mark(wayOf(j))
		key := health.Key{Service: j.Target.Service, Backend: j.Target.Backend}
		c := known[key]
		if c == nil {
			c = &role.Checked{Since: time.Now()}
			if failing[key] {
				c.State.Status = health.Failing
			}
		}
		if c.Check = j.Check; c.Check.Passive == nil {
			c.Passive, c.Complaint = health.State{}, nil
		}
		k.backends[key] = c
	}
	k.monitor.Set(jobs)
}

// checksEnded takes results.
func (k *checks) checksEnded(list []health.Result) {
	k.take(list, k.monitor, func(r health.Result, c *role.Checked) {
		if !k.unmade.Unmade(r) {
			c.Take(r)
		}
	})
}

// take brings the chains of services up to date if results have changed what is thought of their
// backends: those of each service once.
func (k *checks) take(list []health.Result, of interface{ Current(health.Result) bool },
	note func(health.Result, *role.Checked)) {
	var services []string
	keep, listed := false, map[string]bool{}
	for _, r := range list {
		c := k.backends[r.Key]
		if c == nil || !of.Current(r) {
			continue
		}
		before := c.Opinion()
		note(r, c)
		now := c.Opinion()
		if now.Status != before.Status {
			k.Tell(api.Event{
				Service: r.Service, Backend: r.Backend, Status: now.Status.String(),
				Reason: role.ReasonOf(r.Err),
			})
			keep = true
		}
		if now != before && !listed[r.Service] {
			services, listed[r.Service] = append(services, r.Service), true
		}
	}
	if keep {
		k.Core.KeepFailing()
	}
	if len(services) > 0 {
		k.changed(services)
	}
}

// failing adds the backends that fail to a list.
func (k *checks) failing(list []health.Key) []health.Key {
	for key, c := range k.backends {
		if c.Status() == health.Failing {
			list = append(list, key)
		}
	}
	return list
}

// healthView is what the API tells of a backend's checks; nil if it has none.
func (k *checks) healthView(s *Service, backend string) *api.Health {
	c := k.backends[health.Key{Service: s.Name, Backend: backend}]
	if s.Check == nil || c == nil {
		return nil
	}
	return c.View()
}
