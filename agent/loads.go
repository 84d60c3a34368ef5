package agent

import (
	"sextant/agent/serverload"
	"sextant/config"
)

// askLoads makes the services whose load is not that of their connections those that are asked how
// busy they are.
func (a *Agent) askLoads() {
	var jobs []serverload.Job
	if a.host != nil {
		for _, s := range a.host.services {
			if s.Load.Kind != config.LoadConnections && s.Load.Kind != config.LoadQueue {
				jobs = append(jobs, serverload.Job{Service: s.Name, Load: s.Load})
			}
		}
	}
	a.loads.Set(jobs)
}

// loadTold gives the data plane what a service has said of itself. One that does not answer counts
// as busy as it was: it may be so busy that it can't.
func (a *Agent) loadTold(r serverload.Result) {
	if r.Err != nil {
		a.options.Log.Warn("a service does not say how busy it is; what it said before counts",
			"service", r.Service, "error", r.Err)
		return
	}
	if a.host == nil {
		return
	}
	for _, s := range a.host.services {
		if s.Name != r.Service {
			continue
		}
		if err := a.host.program.Report(s.index, r.Busy); err != nil {
			a.options.Log.Warn("the data plane does not know how busy a service is", "service",
				s.Name, "error", err)
		}
	}
}
