package config

import "slices"

// A Declared service is all that other software, which keeps services of an edge, says of one.
type Declared struct {
	Name string
	ServiceChange
	MaxBackends *int
	Backends    []DeclaredBackend // all there are
}

// DeclaredBackend is a backend of a Declared service. What is nil has its default; what can't be
// said, such as the backend's site, stays as it is.
type DeclaredBackend struct {
	Name string
	BackendChange
}

// Declare sets services of the edge, adds those that are not there, and removes others, all in one
// change. What a declaration does not know of a service, such as its check, stays as it is; that
// one to remove is not there is no error.
func Declare(n *Node, set []Declared, remove []string) (*Node, error) {
	return n.changeEdge(func(e *Edge) error {
		gone, at := map[string]bool{}, map[string]int{}
		for _, name := range remove {
			gone[name] = true
		}
		e.Services = slices.DeleteFunc(e.Services, func(s Service) bool { return gone[s.Name] })
		for i, s := range e.Services {
			at[s.Name] = i
		}
		for _, d := range set {
			i, there := at[d.Name]
			if !there {
				if err := needs(d.VIP != nil, "vip of service "+d.Name); err != nil {
					return err
				}
				if err := needs(d.Port != nil, "port of service "+d.Name); err != nil {
					return err
				}
				i = len(e.Services)
				e.Services, at[d.Name] = append(e.Services, fresh[Service]()), i
			}
			if err := d.on(&e.Services[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d Declared) on(s *Service) error {
	s.Name = d.Name
	setAll(s, d.ServiceChange)
	if d.MaxBackends != nil {
		s.MaxBackends = *d.MaxBackends
	}
	before := map[string]Backend{}
	for _, b := range s.Backends {
		before[b.Name] = b
	}
	s.Backends = make([]Backend, len(d.Backends))
	for i, b := range d.Backends {
		if err := needs(b.SID != nil, "sid of backend "+b.Name); err != nil {
			return err
		}
		old, next := before[b.Name], fresh[Backend]()
		next.Name, next.Path, next.Node, next.Site = b.Name, old.Path, old.Node, old.Site
		setAll(&next, b.BackendChange)
		s.Backends[i] = next
	}
	return nil
}

// Declaration is what Declare is to be told so that it leaves a service as it is.
func (s Service) Declaration() Declared {
	d := Declared{Name: s.Name, ServiceChange: ServiceChange{VIP: &s.VIP, Protocol: &s.Protocol,
		Port: &s.Port, Policy: &s.Policy, Table: &s.Table, Candidates: &s.Candidates,
		Depth: &s.Depth, DrainTime: &s.DrainTime, SlowStart: &s.SlowStart,
		ReturnHold: &s.ReturnHold, NewConnections: &s.NewConnections},
		MaxBackends: &s.MaxBackends, Backends: make([]DeclaredBackend, len(s.Backends))}
	for i, b := range s.Backends {
		d.Backends[i] = DeclaredBackend{b.Name, BackendChange{SID: &b.SID, Weight: &b.Weight,
			State: &b.State}}
		if b.Agent.IsValid() {
			d.Backends[i].Agent = &b.Agent
		}
	}
	return d
}
