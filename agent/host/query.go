package host

import (
	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/acceptance"
)

// ServiceNames is role.Serving.
func (h *Room) ServiceNames() (names []string) {
	if h.Runs == nil {
		return nil
	}
	for i := range h.Runs.Services {
		names = append(names, h.Runs.Services[i].Name)
	}
	return names
}

// Services is role.Serving.
func (h *Room) Services(names map[string]bool) (services []api.Service, err error) {
	if h.Runs == nil {
		return nil, nil
	}
	for i := range h.Runs.Services {
		if !names[h.Runs.Services[i].Name] {
			continue
		}
		s, err := h.Runs.view(&h.Runs.Services[i])
		if err != nil {
			return nil, err
		}
		s.Host.Health = h.own.view(s.Name)
		services = append(services, s)
	}
	return services, nil
}

// view is a service of the host with its counters.
func (h *Role) view(s *hostService) (api.Service, error) {
	view := api.Service{Name: s.Name, Role: api.Host, VIP: s.VIP, Protocol: s.Protocol,
		Port: s.Port}
	t, err := h.Program.Traffic(s.Index)
	if err != nil {
		return view, err
	}
	busy, err := h.Program.Busy(s.Index, s.Policy)
	if err != nil {
		return view, err
	}
	connections := busy
	if s.Protocol == config.TCP {
		if connections, err = h.Program.Busy(s.Index, acceptance.Policy{}); err != nil {
			return view, err
		}
	}
	state, err := h.Program.AcceptState(s.Index)
	if err != nil {
		return view, err
	}
	signals, err := h.Program.Signals(s.Index)
	if err != nil {
		return view, err
	}
	load, mean := s.Policy.Loads(state, uint32(max(busy, 0)))
	view.Packets, view.Bytes = t.Taken.Packets, t.Taken.Bytes
	view.Host = &api.HostService{
		Accept: api.AcceptOf(s.Accept), Threshold: s.Policy.ThresholdIn(state), Busy: busy,
		Connections: connections, Load: load, Mean: mean,
		Offered: t.Offered, Accepted: t.Accepted, Refused: t.Refused, Forced: t.Forced,
		PassedOnPackets: t.PassedOn.Packets, PassedOnBytes: t.PassedOn.Bytes,
		Established: signals.Established, Resets: signals.Resets,
		StrayResets: signals.StrayResets,
		ByEdge:      signals.ByEdge, NotRouted: signals.NotRouted,
	}
	return view, nil
}
