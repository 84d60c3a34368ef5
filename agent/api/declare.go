package api

import (
	"context"
	"net/http"
	"time"

	"sextant/config"
)

// Declared is a service of an edge as other software keeps it, whole: backends that it does not
// name are not there.
type Declared struct {
	Name string `json:"name"`
	ServiceSpec
	MaxBackends *int              `json:"maxBackends,omitempty"`
	Backends    []DeclaredBackend `json:"backends"`
}

// DeclaredBackend is a backend of a Declared service. What is left out has its default; what can't
// be said here, such as its site, stays as it is.
type DeclaredBackend struct {
	Name string `json:"name"`
	BackendSpec
}

// DeclaredList is all services of an edge, and the configuration that they are of.
type DeclaredList struct {
	Fingerprint string     `json:"fingerprint"` // for If-Match
	Items       []Declared `json:"items"`
}

// Declaration sets, adds and removes services in one change. One to remove that is not there is no
// error.
type Declaration struct {
	// Fingerprint is that of the one configuration that may be changed, as If-Match has it; "":
	// any.
	Fingerprint string     `json:"fingerprint,omitempty"`
	Set         []Declared `json:"set,omitempty"`
	Remove      []string   `json:"remove,omitempty"`
}

// DeclarationMade is what a Declaration changed, and the configuration that runs now.
type DeclarationMade struct {
	Fingerprint string   `json:"fingerprint"`
	Changes     int      `json:"changes"`
	Warnings    []string `json:"warnings,omitempty"`
}

func (h handler) declared(r *http.Request) (any, error) {
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	list := DeclaredList{Items: []Declared{}}
	if list.Fingerprint, err = config.Fingerprint(node); err != nil || node.Edge == nil {
		return list, err
	}
	for _, s := range node.Edge.Services {
		list.Items = append(list.Items, declarationOf(s))
	}
	return list, nil
}

func (h handler) declare(r *http.Request) (any, error) {
	var asked Declaration
	if err := ReadJSON(r, &asked); err != nil {
		return nil, err
	}
	set := make([]config.Declared, len(asked.Set))
	for i, d := range asked.Set {
		var err error
		if set[i], err = d.declared(); err != nil {
			return nil, err
		}
	}
	return h.declaring(r.Context(), asked.Fingerprint, func(n *config.Node) (*config.Node, error) {
		return config.Declare(n, set, asked.Remove)
	})
}

// declaring makes a declaration that is for one configuration, or for any.
func (h handler) declaring(ctx context.Context, fingerprint string,
	edit func(*config.Node) (*config.Node, error)) (any, error) {
	if fingerprint != "" {
		ctx = context.WithValue(ctx, matchKey{}, fingerprint)
	}
	var runs *config.Node
	changes, err := h.agent.Change(ctx, func(n *config.Node) (next *config.Node, err error) {
		next, err = edit(n)
		runs = next
		return next, err
	})
	if err != nil {
		return nil, err
	}
	made := DeclarationMade{Changes: len(changes), Warnings: h.lastWarnings(ctx, changes)}
	made.Fingerprint, err = config.Fingerprint(runs)
	return made, err
}

func (d Declared) declared() (config.Declared, error) {
	change, err := d.edge()
	of := config.Declared{Name: d.Name, ServiceChange: change, MaxBackends: d.MaxBackends,
		Backends: make([]config.DeclaredBackend, len(d.Backends))}
	for i, b := range d.Backends {
		of.Backends[i] = config.DeclaredBackend{Name: b.Name, BackendChange: b.change()}
	}
	return of, err
}

func declarationOf(s config.Service) Declared {
	of := s.Declaration()
	d := Declared{Name: of.Name, MaxBackends: of.MaxBackends,
		ServiceSpec: ServiceSpec{VIP: of.VIP, Protocol: of.Protocol, Port: of.Port,
			ContinuitySpec: ContinuitySpec{Policy: of.Policy, Table: of.Table,
				Candidates: of.Candidates, Depth: of.Depth,
				DrainTimeSeconds:  seconds(of.DrainTime),
				SlowStartSeconds:  seconds(of.SlowStart),
				ReturnHoldSeconds: seconds(of.ReturnHold)}},
		Backends: make([]DeclaredBackend, len(of.Backends))}
	if *of.NewConnections != (config.NewConnections{}) {
		d.NewConnections = (*NewConnectionsSpec)(of.NewConnections)
	}
	for i, b := range of.Backends {
		d.Backends[i] = DeclaredBackend{b.Name,
			BackendSpec{SID: b.SID, Weight: b.Weight, State: b.State, Agent: b.Agent}}
	}
	return d
}

func seconds(d *time.Duration) *float64 {
	return new(d.Seconds())
}
