package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"sextant/config"
	"sextant/packet/lists"
)

// edit is a change of the configuration.
type edit func(*config.Node) (*config.Node, error)

func (h handler) change(ctx context.Context, e edit) (any, error) {
	changes, err := h.agent.Change(ctx, e)
	return Changes{Items: notNull(changes), Warnings: h.lastWarnings(ctx, changes)}, err
}

func (h handler) putService(r *http.Request) (any, error) {
	var spec ServiceSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	name, role := r.PathValue("name"), Role(r.FormValue("role"))
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		return spec.put(n, role, name, conditionOf(r))
	})
}

func (s ServiceSpec) put(n *config.Node, role Role, name string,
	c condition) (*config.Node, error) {
	role, err := roleOf(n, role)
	if err != nil {
		return nil, err
	}
	if role == Host {
		change, err := s.host()
		if err != nil {
			return nil, err
		}
		exists := slices.ContainsFunc(n.Host.Services,
			func(s config.HostService) bool { return s.Name == name })
		if c.adds(exists) {
			return config.AddHostService(n, name, change)
		}
		return config.SetHostService(n, name, change)
	}
	change, err := s.edge()
	if err != nil {
		return nil, err
	}
	if c.adds(hasService(n, name)) {
		return config.AddService(n, name, change)
	}
	return config.SetService(n, name, change)
}

func (h handler) deleteService(r *http.Request) (any, error) {
	name, r := r.PathValue("name"), breaking(r) // a deletion by name implies that
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		role, err := roleOf(n, Role(r.FormValue("role")))
		switch {
		case err != nil:
			return nil, err
		case role == Host:
			return config.DeleteHostService(n, name)
		default:
			return config.DeleteService(n, name)
		}
	})
}

func (h handler) putBackend(r *http.Request) (any, error) {
	var spec BackendSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	if spec.SID != nil || spec.Agent != nil { // it becomes another server
		if err := Require(r.Context(), Admin); err != nil {
			return nil, err
		}
	}
	service, name := r.PathValue("name"), r.PathValue("backend")
	learned, err := h.learned(r.Context(), service, name)
	if err != nil {
		return nil, err
	}
	if spec.State != nil && *spec.State == config.Down {
		r = breaking(r) // the word for giving its connections up
	}
	changed, err := h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		if learned.IsValid() && conditionOf(r) != mustBeNew {
			return config.SetLearned(n, service, name, learned, spec.change())
		}
		if conditionOf(r).adds(hasBackend(n, service, name)) {
			if err := Require(r.Context(), Admin); err != nil {
				return nil, err
			}
			return config.AddBackend(n, service, name, spec.change())
		}
		return config.SetBackend(n, service, name, spec.change())
	})
	return changed, h.naming(r.Context(), service, name, err)
}

// naming adds the backends that BGP told of to an error that says which there are.
func (h handler) naming(ctx context.Context, service, name string, err error) error {
	if !errors.Is(err, config.ErrNotFound) {
		return err
	}
	services, failed := h.agent.Services(ctx, service)
	if failed != nil {
		return err
	}
	for _, s := range services {
		if s.Edge != nil {
			return config.Absent("backend", name,
				lists.Map(s.Edge.Backends, func(b Backend) string { return b.Name }))
		}
	}
	return err
}

// learned returns the SID of a backend that BGP told of; the zero value if it is none of these.
func (h handler) learned(ctx context.Context, service, name string) (netip.Addr, error) {
	n, err := h.agent.Config(ctx)
	if err != nil || hasBackend(n, service, name) {
		return netip.Addr{}, err
	}
	services, err := h.agent.Services(ctx, service)
	if err != nil {
		return netip.Addr{}, err
	}
	if _, b, err := findBackend(services, service, name); err == nil && b.Learned {
		return b.SID, nil
	}
	return netip.Addr{}, nil
}

func (h handler) deleteBackend(r *http.Request) (any, error) {
	service, name := r.PathValue("name"), r.PathValue("backend")
	learned, err := h.learned(r.Context(), service, name)
	if err != nil {
		return nil, err
	}
	if learned.IsValid() {
		return nil, &Error{Conflict,
			fmt.Sprintf("backend %q was learned by BGP and is there as long as its host says so; "+
				"withdraw it there (sextant bgp announce nothing), or drain it here", name)}
	}
	changed, err := h.change(breaking(r).Context(), func(n *config.Node) (*config.Node, error) {
		return config.DeleteBackend(n, service, name)
	})
	return changed, h.naming(r.Context(), service, name, err)
}

func (h handler) diff(r *http.Request) (any, error) {
	next, err := parsedNode(r)
	if err != nil {
		return nil, err
	}
	running, err := h.agent.Config(r.Context())
	if err != nil {
		return nil, err
	}
	if err := mayHaveRead(r.Context(), running, next); err != nil {
		return nil, err
	}
	if err := ReadSecrets(next); err != nil {
		return nil, invalid(err.Error())
	}
	return Changes{DryRun: true, Items: notNull(config.Diff(running, next))}, nil
}

// mayHaveRead refuses a node file by which a caller who may not apply it would have the agent read
// files other than those that the running node names, and tell what it finds.
func mayHaveRead(ctx context.Context, running, next *config.Node) error {
	known := secretFiles(running)
	for name := range secretFiles(next) {
		if known[name] {
			continue
		}
		if err := Require(ctx, Admin); err != nil {
			return &Error{Forbidden, fmt.Sprintf("the node file names %s, which the running "+
				"configuration does not: %v", name, err)}
		}
	}
	return nil
}

func (h handler) apply(r *http.Request) (any, error) {
	dryRun, err := FlagOf(r, "dryRun")
	if err != nil {
		return nil, err
	}
	within, err := confirmOf(r)
	if err != nil {
		return nil, err
	}
	changes, err := h.agent.Replace(withConfirmation(r.Context(), within),
		func() (*config.Node, error) { return nodeOf(r) }, dryRun)
	answer := Changes{DryRun: dryRun, Items: notNull(changes)}
	if !dryRun {
		answer.Warnings = h.lastWarnings(r.Context(), changes)
	}
	return answer, err
}

// lastWarnings names the services that changes left without a backend that takes new connections.
func (h handler) lastWarnings(ctx context.Context, changes []config.Change) (list []string) {
	var changed []string
	for _, c := range changes {
		object, _ := strings.CutPrefix(c.Object, "service ")
		if name, _, ofBackend := strings.Cut(object, ": backend "); ofBackend {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	services, err := h.agent.Services(ctx, changed...)
	if err != nil {
		return nil // the change is made; what is known is said
	}
	for _, s := range services {
		if s.Edge == nil || slices.ContainsFunc(s.Edge.Backends,
			func(b Backend) bool { return b.Effective == config.Up }) {
			continue
		}
		list = append(list, fmt.Sprintf("service %s has no backend left that takes new "+
			"connections: they go to draining backends as long as there are any, and fail then; "+
			"add a backend, or undrain one", s.Name))
	}
	return list
}

// nodeOf reads the node file in a request's body, and the secret where that is in a file of its
// own.
func nodeOf(r *http.Request) (*config.Node, error) {
	node, err := parsedNode(r)
	if err != nil {
		return nil, err
	}
	if err := ReadSecrets(node); err != nil {
		return nil, invalid(err.Error())
	}
	return node, nil
}

// parsedNode reads the node file in a request's body, and no other file.
func parsedNode(r *http.Request) (*config.Node, error) {
	name := cmp.Or(r.URL.Query().Get("file"), "body")
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, invalid(fmt.Sprintf("the node file was not received: %v; send at most %d bytes",
			err, maxBody))
	}
	if a, restricted := r.Context().Value(accessKey{}).(*Access); restricted &&
		!a.may.Includes(Admin) {
		return config.ParseWithin(name, text, maxReadValues)
	}
	return config.Parse(name, text)
}

// maxReadValues bounds a node file of a caller who may not apply it: values take memory.
const maxReadValues = 1 << 18

// roleOf checks the role that a request names, or finds the only one of the node.
func roleOf(n *config.Node, role Role) (Role, error) {
	// those with services
	roles := slices.DeleteFunc(n.Roles(),
		func(r string) bool { return Role(r) != Edge && Role(r) != Host })
	switch {
	case role == "" && len(roles) == 1:
		return Role(roles[0]), nil
	case role == "":
		return "", invalid(fmt.Sprintf("node %q is edge and host; say which role is meant", n.Name))
	case role != Edge && role != Host:
		return "", invalid(fmt.Sprintf("unknown role %q; write edge or host", role))
	case !slices.Contains(roles, string(role)):
		return "", &Error{Conflict,
			fmt.Sprintf("node %q is no %s; add %q to its node file and apply it", n.Name, role,
				string(role)+":")}
	}
	return role, nil
}

// condition is what a PUT demands of the present state (RFC 9110 section 13.1).
type condition int

const (
	whatever condition = iota
	mustBeNew
	mustExist
)

func conditionOf(r *http.Request) condition {
	switch {
	case r.Header.Get("If-None-Match") == "*":
		return mustBeNew
	case r.Header.Get("If-Match") == "*":
		return mustExist
	}
	return whatever
}

// adds chooses between adding and setting; the one that is wrong here returns the precise error.
func (c condition) adds(exists bool) bool { return c == mustBeNew || c == whatever && !exists }

func hasService(n *config.Node, name string) bool {
	return n.Edge != nil && slices.ContainsFunc(n.Edge.Services,
		func(s config.Service) bool { return s.Name == name })
}

func hasBackend(n *config.Node, service, name string) bool {
	if n.Edge == nil {
		return false
	}
	for _, s := range n.Edge.Services {
		if s.Name == service {
			return slices.ContainsFunc(s.Backends,
				func(b config.Backend) bool { return b.Name == name })
		}
	}
	return false
}
