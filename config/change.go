package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"sextant/packet/lists"
)

// ServiceChange is what a run-time change says about a service of the edge. A
// nil field leaves the value as it is, or at its default in a new service.
type ServiceChange struct {
	VIP        *netip.Addr
	Protocol   *Protocol
	Port       *uint16
	Policy     *ServicePolicy
	Table      *Table
	Candidates *int
	Depth      *int
	DrainTime  *time.Duration
	SlowStart  *time.Duration
	ReturnHold *time.Duration
	// NewConnections replaces the limit; the zero value takes it away.
	NewConnections *NewConnections
}

// HostServiceChange is the same for a service of the host.
type HostServiceChange struct {
	VIP      *netip.Addr
	Protocol *Protocol
	Port     *uint16
	Accept   AcceptChange
}

// AcceptChange is the same for an acceptance policy. Another policy begins
// with its own defaults.
type AcceptChange struct {
	Policy                    *Policy
	Threshold                 *int
	Workers, Window           *int
	LowPermille, HighPermille *int
	Initial                   *int
	Cores                     *int
}

// BackendChange is the same for a backend.
type BackendChange struct {
	SID    *netip.Addr
	Weight *int
	State  *BackendState
	Agent  *netip.AddrPort
}

// The functions below return a changed copy of a node, or a *Problem of the
// kind ErrNotFound, ErrConflict or ErrInvalid. The node itself stays as it is.

// AddService adds a service to the edge.
func AddService(n *Node, name string, change ServiceChange) (*Node, error) {
	return n.changeEdge(func(e *Edge) error {
		if slices.ContainsFunc(e.Services, func(s Service) bool { return s.Name == name }) {
			return exists("service", name)
		}
		if err := needs(change.VIP != nil, "vip"); err != nil {
			return err
		}
		if err := needs(change.Port != nil, "port"); err != nil {
			return err
		}
		s := fresh[Service]()
		s.Name = name
		setAll(&s, change)
		e.Services = append(e.Services, s)
		return nil
	})
}

// SetService changes a service of the edge.
func SetService(n *Node, name string, change ServiceChange) (*Node, error) {
	return n.changeService(name, func(s *Service) error {
		setAll(s, change)
		return nil
	})
}

// DeleteService deletes a service of the edge together with its backends.
func DeleteService(n *Node, name string) (*Node, error) {
	return n.changeEdge(func(e *Edge) error {
		return deleteNamed(&e.Services, "service", name, func(s Service) string { return s.Name })
	})
}

// AddHostService adds a service to the host.
func AddHostService(n *Node, name string, change HostServiceChange) (*Node, error) {
	return n.changeHost(func(h *Host) error {
		if slices.ContainsFunc(h.Services, func(s HostService) bool { return s.Name == name }) {
			return exists("service", name)
		}
		if err := needs(change.VIP != nil, "vip"); err != nil {
			return err
		}
		if err := needs(change.Port != nil, "port"); err != nil {
			return err
		}
		s := fresh[HostService]()
		s.Name = name
		h.Services = append(h.Services, s)
		return change.on(&h.Services[len(h.Services)-1])
	})
}

// SetHostService changes a service of the host.
func SetHostService(n *Node, name string, change HostServiceChange) (*Node, error) {
	return n.changeHost(func(h *Host) error {
		i := slices.IndexFunc(h.Services, func(s HostService) bool { return s.Name == name })
		if i < 0 {
			return Absent("service", name,
				lists.Map(h.Services, func(s HostService) string { return s.Name }))
		}
		return change.on(&h.Services[i])
	})
}

// DeleteHostService deletes a service of the host.
func DeleteHostService(n *Node, name string) (*Node, error) {
	return n.changeHost(func(h *Host) error {
		return deleteNamed(&h.Services, "service", name,
			func(s HostService) string { return s.Name })
	})
}

// AddBackend adds a backend to a service of the edge.
func AddBackend(n *Node, service, name string, change BackendChange) (*Node, error) {
	return n.changeService(service, func(s *Service) error {
		if slices.ContainsFunc(s.Backends, func(b Backend) bool { return b.Name == name }) {
			return exists("backend", name)
		}
		if err := needs(change.SID != nil, "sid"); err != nil {
			return err
		}
		b := fresh[Backend]()
		b.Name = name
		setAll(&b, change)
		s.Backends = append(s.Backends, b)
		return nil
	})
}

// SetBackend changes a backend of a service of the edge.
func SetBackend(n *Node, service, name string, change BackendChange) (*Node, error) {
	return n.changeService(service, func(s *Service) error {
		i := slices.IndexFunc(s.Backends, func(b Backend) bool { return b.Name == name })
		if i < 0 {
			return Absent("backend", name,
				lists.Map(s.Backends, func(b Backend) string { return b.Name }))
		}
		setAll(&s.Backends[i], change)
		return nil
	})
}

// DeleteBackend deletes a backend from a service of the edge.
func DeleteBackend(n *Node, service, name string) (*Node, error) {
	return n.changeService(service, func(s *Service) error {
		return deleteNamed(&s.Backends, "backend", name, func(b Backend) string { return b.Name })
	})
}

func (n *Node) changeService(name string, change func(*Service) error) (*Node, error) {
	return n.changeEdge(func(e *Edge) error {
		i := slices.IndexFunc(e.Services, func(s Service) bool { return s.Name == name })
		if i < 0 {
			return Absent("service", name,
				lists.Map(e.Services, func(s Service) string { return s.Name }))
		}
		clone(reflect.ValueOf(&e.Services[i]).Elem())
		return change(&e.Services[i])
	})
}

// changeEdge changes the services of the edge, and nothing else of it. The copy shares with n what
// its services are made of: of many thousand one changes at a time.
func (n *Node) changeEdge(change func(*Edge) error) (*Node, error) {
	if n.Edge == nil {
		return nil, roleless(n, "edge")
	}
	edge := *n.Edge
	edge.Services = slices.Clone(edge.Services)
	c := *n
	c.Edge = &edge
	if err := change(&edge); err != nil {
		return nil, err
	}
	return c.checked(validateAfter(&c, n))
}

func (n *Node) changeHost(change func(*Host) error) (*Node, error) {
	if n.Host == nil {
		return nil, roleless(n, "host")
	}
	return n.changed(func(c *Node) error { return change(c.Host) })
}

// changed applies a change to a copy and checks the result.
func (n *Node) changed(change func(*Node) error) (*Node, error) {
	c := n.Clone()
	if err := change(c); err != nil {
		return nil, err
	}
	return c.checked(Validate(c))
}

// checked is a changed node, or its first problem.
func (n *Node) checked(problems []*Problem) (*Node, error) {
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return n, nil
}

func (c HostServiceChange) on(s *HostService) error {
	setAll(s, c)
	accept, problems := c.Accept.on(s.Accept)
	if len(problems) > 0 {
		return problems[0]
	}
	s.Accept = accept
	return nil
}

// on returns the policy after the change. Values of another policy are
// problems, and so is the absence of one that has no default; their paths are
// those of the keys in the node file.
func (c AcceptChange) on(a Accept) (Accept, []*Problem) {
	policy := a.Policy
	if c.Policy != nil {
		policy = *c.Policy
	}
	if !policy.Known() {
		return Accept{Policy: policy}, nil // Validate tells
	}
	another := policy != a.Policy
	if another {
		a = newAccept(policy)
	}
	problems := c.misplaced(policy)
	if another && policy == Static && c.Threshold == nil {
		problems = append(problems, lacking("threshold",
			"below how many busy connections this host accepts"))
	}
	if another && policy == Dynamic && c.Workers == nil {
		problems = append(problems, lacking("workers",
			"how many connections the server works on at once"))
	}
	setAll(&a, c)
	return a, problems
}

func (c AcceptChange) misplaced(policy Policy) []*Problem {
	var problems []*Problem
	for _, f := range []struct {
		key   string
		value *int
	}{
		{"threshold", c.Threshold},
		{"workers", c.Workers},
		{"window", c.Window},
		{"low", c.LowPermille},
		{"high", c.HighPermille},
		{"initial", c.Initial},
		{"cores", c.Cores},
	} {
		if f.value != nil && !(Accept{Policy: policy}).applies(f.key) {
			p := invalid(fmt.Sprintf("%s does not belong to policy %s", f.key, policy),
				"leave it out, or choose policy "+ownersOf(f.key))
			p.Path, p.about = f.key, []string{"policy"}
			problems = append(problems, p)
		}
	}
	return problems
}

// ownersOf names the policies that have a value: "average or delay".
func ownersOf(key string) string {
	var owners []string
	for _, p := range policies {
		if (Accept{Policy: p}).applies(key) {
			owners = append(owners, string(p))
		}
	}
	return strings.Join(owners, " or ")
}

func lacking(key, meaning string) *Problem {
	p := invalid(key+" is missing", "say "+meaning)
	p.Path, p.about = key, []string{"policy"}
	return p
}

// setAll gives an object the values of the pointers of a change that are not nil, by the names of
// their fields.
func setAll(object, change any) {
	into, from := reflect.ValueOf(object).Elem(), reflect.ValueOf(change)
	for i := range from.NumField() {
		if value := from.Field(i); value.Kind() == reflect.Pointer && !value.IsNil() {
			into.FieldByName(from.Type().Field(i).Name).Set(value.Elem())
		}
	}
}

func deleteNamed[T any](list *[]T, what, name string, nameOf func(T) string) error {
	i := slices.IndexFunc(*list, func(item T) bool { return nameOf(item) == name })
	if i < 0 {
		return Absent(what, name, lists.Map(*list, nameOf))
	}
	*list = slices.Delete(*list, i, i+1)
	return nil
}

func needs(given bool, what string) error {
	if given {
		return nil
	}
	return invalid(what+" is missing", "give one")
}

func exists(what, name string) *Problem {
	return &Problem{Kind: ErrConflict, Text: fmt.Sprintf("%s %q is there already", what, name),
		Mend: "choose another name, or change it with set"}
}

// Absent is the problem that an object is not there; known are the names of those that are.
func Absent(what, name string, known []string) *Problem {
	mend := "none is configured: add it first"
	if len(known) > 0 {
		mend = "known: " + enumerate(known)
	}
	return &Problem{Kind: ErrNotFound, Text: fmt.Sprintf("there is no %s %q", what, name),
		Mend: mend}
}

func roleless(n *Node, role string) *Problem {
	return &Problem{Kind: ErrConflict, Text: fmt.Sprintf("node %q is no %s", n.Name, role),
		Mend: fmt.Sprintf("add %q to its node file and apply it", role+":")}
}
