package host

import (
	"sextant/agent/serverload"
	"sextant/config"
)

// askLoads makes the services whose load is not that of their connections those that are asked how
// busy they are.
func (h *Room) askLoads() {
	var jobs []serverload.Job
	if h.Runs != nil {
		for _, s := range h.Runs.Services {
			if s.Load.Kind != config.LoadConnections && s.Load.Kind != config.LoadQueue {
				jobs = append(jobs, serverload.Job{Service: s.Name, Load: s.Load})
			}
		}
	}
	h.loads.Set(jobs)
}

// loadTold gives the data plane what a service has said of itself. One that does not answer counts
// as busy as it was: it may be so busy that it can't.
func (h *Room) loadTold(r serverload.Result) {
	if r.Err != nil {
		h.Log.Warn("a service does not say how busy it is; what it said before counts",
			"service", r.Service, "error", r.Err)
		return
	}
	if h.Runs == nil {
		return
	}
	for _, s := range h.Runs.Services {
		if s.Name != r.Service {
			continue
		}
		if err := h.Runs.Program.Report(s.Index, r.Busy); err != nil {
			h.Log.Warn("the data plane does not know how busy a service is", "service",
				s.Name, "error", err)
		}
	}
}
