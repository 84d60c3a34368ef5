package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"sextant/agent/peer"
	"sextant/config"
	"sextant/packet/flow"
)

// HostConnections are the open connections of a service on a host.
type HostConnections struct {
	Service     string          `json:"service"`
	VIP         netip.Addr      `json:"vip"`
	Protocol    config.Protocol `json:"protocol"`
	Port        uint16          `json:"port"` // 0: any
	Connections int             `json:"connections"`
	// Since the programs were first loaded:
	Opened      uint64 `json:"opened"`      // SYNs that were taken
	Established uint64 `json:"established"` // connections that were established
	Resets      uint64 `json:"resets"`      // RSTs that were sent
	// of these, about packets of no connection of this host
	StrayResets uint64 `json:"strayResets"`
	// busy connections per core, half a connection added, as acceptance policies compare them; and
	// that of hosts in the mean, as far as refused SYNs told this one, 0: they did not
	Load float64 `json:"load"`
	Mean float64 `json:"mean"`
	// by which the host accepts
	Accept config.Policy `json:"accept"`
}

// BackendConnections are the open connections that a backend's host has for a service.
type BackendConnections struct {
	Service     string         `json:"service"`
	Backend     string         `json:"backend"`
	Agent       netip.AddrPort `json:"agent"` // of the host, which was asked
	Connections int            `json:"connections"`
}

// askTimeout bounds how long an edge waits for a host's agent.
const askTimeout = 3 * time.Second

// ConnectionsHandler tells edges how many connections this host has. It only reads.
func ConnectionsHandler(agent Agent) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		services, err := agent.Services(r.Context())
		if err != nil {
			writeError(w, err)
			return
		}
		list := List[HostConnections]{Items: []HostConnections{}}
		for _, s := range services {
			if s.Host != nil {
				list.Items = append(list.Items, HostConnections{
					Service: s.Name, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port,
					Connections: s.Host.Connections,
					Opened:      s.Host.Accepted + s.Host.Forced, Established: s.Host.Established,
					Resets: s.Host.Resets, StrayResets: s.Host.StrayResets,
					Load: s.Host.Load, Mean: s.Host.Mean, Accept: s.Host.Accept.Policy,
				})
			}
		}
		writeJSON(w, http.StatusOK, list)
	})
}

// connections answers for a backend by asking its host.
func (h handler) connections(r *http.Request) (any, error) {
	services, err := h.agent.Services(r.Context())
	if err != nil {
		return nil, err
	}
	service, backend, err := findBackend(services, r.PathValue("name"), r.PathValue("backend"))
	if err != nil {
		return nil, err
	}
	if !backend.Agent.IsValid() {
		return nil, &Error{Conflict,
			fmt.Sprintf("who asks for connections of backend %q must know its agent; "+
				"write api: {metrics: \"[ADDRESS]:9477\"} into the host's node file, and here: "+
				"sextant backend set %s %s --agent [ADDRESS]:9477", backend.Name, service.Name,
				backend.Name)}
	}
	node, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	c, err := AskHost(r.Context(), node.Secret, backend.Agent, service.Endpoint())
	return BackendConnections{service.Name, backend.Name, backend.Agent, c.Connections}, err
}

func findBackend(services []Service, service, backend string) (Service, Backend, error) {
	for _, s := range services {
		if s.Edge == nil || s.Name != service {
			continue
		}
		for _, b := range s.Edge.Backends {
			if b.Name == backend {
				return s, b, nil
			}
		}
		return s, Backend{}, &Error{NotFound,
			fmt.Sprintf("there is no backend %q in service %q; see: sextant backend list",
				backend, service)}
	}
	return Service{}, Backend{}, &Error{NotFound,
		fmt.Sprintf("there is no service %q; see: sextant service list", service)}
}

// AskHost asks a host's agent for its connections of an endpoint. Both prove that they know the
// cluster's secret.
func AskHost(ctx context.Context, secret flow.Secret, agent netip.AddrPort,
	endpoint config.Endpoint) (c HostConnections, err error) {
	failed := func(err error) error {
		return &Error{Conflict, fmt.Sprintf("ask the host's agent at %s for its connections: %v; "+
			"see that it runs with api.metrics at this address", agent, err)}
	}
	list, err := AskHostAll(ctx, secret, agent)
	if err != nil {
		return c, failed(err)
	}
	c, found := ConnectionsOf(list, endpoint)
	if !found {
		return c, failed(fmt.Errorf("it has no service at %s", endpoint))
	}
	return c, nil
}

// AskHostAll is AskHost for all endpoints of the host.
func AskHostAll(ctx context.Context, secret flow.Secret,
	agent netip.AddrPort) ([]HostConnections, error) {
	list, err := askAgent[List[HostConnections]](ctx, secret, agent, "/v1/connections")
	return list.Items, err
}

// askAgent reads what an agent tells other nodes beside its metrics.
func askAgent[T any](ctx context.Context, secret flow.Secret, agent netip.AddrPort,
	path string) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	told, err := peer.Ask(ctx, secret, agent, path)
	if err != nil {
		return value, err
	}
	return value, decodeWhole(json.NewDecoder(bytes.NewReader(told)), &value)
}

// ConnectionsOf finds those of an endpoint. It prefers the endpoint itself to all other ports of
// its VIP.
func ConnectionsOf(list []HostConnections,
	e config.Endpoint) (connections HostConnections, found bool) {
	for _, c := range list {
		exact := c.Port == e.Port
		if c.VIP == e.VIP && c.Protocol == e.Protocol &&
			(exact || c.Port == config.AnyPort && !found) {
			connections, found = c, true
			if exact {
				return connections, true
			}
		}
	}
	return connections, found
}
