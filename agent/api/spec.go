package api

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"sextant/config"
)

// The tag setting of a field names the key of the node file that it changes: flags that repeat the
// key take their help, default and parser from there.

// ServiceSpec is what a PUT says about a service. What is left out stays as it
// is, or gets its default in a new service.
type ServiceSpec struct {
	VIP      *netip.Addr      `json:"vip,omitempty" setting:"edge.services[].vip"`
	Protocol *config.Protocol `json:"protocol,omitempty" setting:"edge.services[].protocol"`
	Port     *uint16          `json:"port,omitempty" setting:"edge.services[].port"` // 0: any
	ContinuitySpec
	NewConnections *NewConnectionsSpec `json:"newConnections,omitempty"` // edge only
	Accept         *AcceptSpec         `json:"accept,omitempty"`         // host only
}

// NewConnectionsSpec is what a PUT says about the limit of new connections: both, per second and at
// once. Zeros take the limit away.
type NewConnectionsSpec struct {
	Rate  int `json:"rate"`
	Burst int `json:"burst"`
}

// ContinuitySpec is what a PUT says about how connections of an edge's service survive changes.
type ContinuitySpec struct {
	Policy            *config.ServicePolicy `json:"policy,omitempty"`
	Table             *config.Table         `json:"table,omitempty" setting:"edge.services[].table"`
	Candidates        *int                  `json:"candidates,omitempty" setting:"edge.services[].candidates"`
	Depth             *int                  `json:"depth,omitempty" setting:"edge.services[].depth"`
	DrainTimeSeconds  *float64              `json:"drainTimeSeconds,omitempty" setting:"edge.services[].drainTime"`
	SlowStartSeconds  *float64              `json:"slowStartSeconds,omitempty" setting:"edge.services[].slowStart"`
	ReturnHoldSeconds *float64              `json:"returnHoldSeconds,omitempty" setting:"edge.services[].returnHold"`
}

// AcceptSpec is what a PUT says about an acceptance policy.
type AcceptSpec struct {
	Policy    *config.Policy `json:"policy,omitempty"`
	Threshold *int           `json:"threshold,omitempty" setting:"host.services[].accept.threshold"`
	Workers   *int           `json:"workers,omitempty" setting:"host.services[].accept.workers"`
	Window    *int           `json:"window,omitempty" setting:"host.services[].accept.window"`
	Low       *float64       `json:"low,omitempty" setting:"host.services[].accept.low"`
	High      *float64       `json:"high,omitempty" setting:"host.services[].accept.high"`
	Initial   *int           `json:"initial,omitempty" setting:"host.services[].accept.initial"`
	Cores     *int           `json:"cores,omitempty" setting:"host.services[].accept.cores"`
}

// BackendSpec is what a PUT says about a backend.
type BackendSpec struct {
	SID    *netip.Addr          `json:"sid,omitempty" setting:"edge.services[].backends[].sid"`
	Weight *int                 `json:"weight,omitempty" setting:"edge.services[].backends[].weight"`
	State  *config.BackendState `json:"state,omitempty" setting:"edge.services[].backends[].state"`
	// of the backend's host
	Agent *netip.AddrPort `json:"agent,omitempty" setting:"edge.services[].backends[].agent"`
}

func (s ServiceSpec) edge() (config.ServiceChange, error) {
	policy := s.Policy
	switch {
	case s.Accept == nil:
	case s.Accept.namesUnknown(): // of neither role; Validate tells what an edge has
		policy = (*config.ServicePolicy)(s.Accept.Policy)
	default:
		return config.ServiceChange{}, invalid("an edge has no acceptance policy; leave it and " +
			"its parameters out, or choose the role host")
	}
	return config.ServiceChange{
		NewConnections: (*config.NewConnections)(s.NewConnections), VIP: s.VIP,
		Protocol: s.Protocol, Port: s.Port,
		Policy: policy, Table: s.Table, Candidates: s.Candidates, Depth: s.Depth,
		DrainTime: duration(s.DrainTimeSeconds), SlowStart: duration(s.SlowStartSeconds),
		ReturnHold: duration(s.ReturnHoldSeconds),
	}, nil
}

func (s ServiceSpec) host() (config.HostServiceChange, error) {
	if s.NewConnections != nil {
		return config.HostServiceChange{}, invalid("a host limits no new connections; leave " +
			"newConnections out, or choose the role edge")
	}
	if s.ContinuitySpec != (ContinuitySpec{}) {
		return config.HostServiceChange{}, invalid("a host chooses no candidates; leave policy, " +
			"table, candidates, depth, drain time, " +
			"slow start and return hold out, or choose the role edge")
	}
	accept, err := s.Accept.change()
	return config.HostServiceChange{VIP: s.VIP, Protocol: s.Protocol, Port: s.Port, Accept: accept},
		err
}

// namesUnknown reports whether all that is said is a policy that no host has.
func (s *AcceptSpec) namesUnknown() bool {
	return s.Policy != nil && *s == AcceptSpec{Policy: s.Policy} && !s.Policy.Known()
}

func (s *AcceptSpec) change() (config.AcceptChange, error) {
	if s == nil {
		return config.AcceptChange{}, nil
	}
	low, err := permille("low", s.Low)
	if err != nil {
		return config.AcceptChange{}, err
	}
	high, err := permille("high", s.High)
	return config.AcceptChange{
		Policy: s.Policy, Threshold: s.Threshold, Workers: s.Workers, Window: s.Window,
		LowPermille: low, HighPermille: high, Initial: s.Initial, Cores: s.Cores,
	}, err
}

// duration makes a time of seconds.
func duration(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(math.Round(*seconds * float64(time.Second))))
}

// permille makes an integer of a share; the data plane has no fractions.
func permille(what string, share *float64) (*int, error) {
	if share == nil {
		return nil, nil
	}
	n := math.Round(*share * 1000)
	if math.Abs(n-*share*1000) > 1e-6 || n < 0 || n > 1000 {
		return nil, invalid(fmt.Sprintf("%s %v is not a share; write a number from 0 to 1 with "+
			"at most three decimals",
			what, *share))
	}
	return new(int(n)), nil
}

func (s BackendSpec) change() config.BackendChange {
	return config.BackendChange{SID: s.SID, Weight: s.Weight, State: s.State, Agent: s.Agent}
}
