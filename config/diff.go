package config

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Operation is what a Change does.
type Operation string

// The operations.
const (
	Add    Operation = "add"
	Remove Operation = "remove"
	Modify Operation = "modify"
)

// Change is one difference between two nodes. Objects are known by their
// names; their order in the file is no difference.
type Change struct {
	Operation Operation `json:"operation"`
	Object    string    `json:"object"`          // like "service web: backend web3"
	Field     string    `json:"field,omitempty"` // of Modify: the key that differs
	From      string    `json:"from,omitempty"`  // of Modify and Remove: the value before
	To        string    `json:"to,omitempty"`    // of Modify and Add: the value after
}

// String writes the change as a line of "sextant diff":
//
//   - service web: backend web4 (sid fcbb:bb00:4::, weight 1, up)
//     ~ service web: backend web3: weight 1 -> 2
func (c Change) String() string {
	switch c.Operation {
	case Add:
		return "+ " + c.Object + bracketed(c.To)
	case Remove:
		return "- " + c.Object + bracketed(c.From)
	default:
		return fmt.Sprintf("~ %s: %s %s -> %s", c.Object, c.Field, orNone(c.From), orNone(c.To))
	}
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Diff lists what turns node a into node b, in the order of the file's schema.
// A changed secret is named, never shown.
func Diff(a, b *Node) []Change {
	var d differ
	d.modify("node", "name", a.Name, b.Name)
	d.domain(a.Domain, b.Domain)
	d.secret(a, b)
	d.modify("node", "state", a.State, b.State)
	d.modify("api", "socket", a.API.Socket, b.API.Socket)
	d.modify("api", "metrics", listener(a.API), listener(b.API))
	d.edge(a.Edge, b.Edge)
	d.host(a.Host, b.Host)
	d.headend(a.Headend, b.Headend)
	d.merge(a.Merge, b.Merge)
	d.strays(a.Strays, b.Strays)
	d.protect(a.Protect, b.Protect)
	d.bgp(a.BGP, b.BGP)
	d.routing(a.Routing, b.Routing)
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) modify(object, field, from, to string) {
	if from != to {
		d.changes = append(d.changes, Change{Modify, object, field, from, to})
	}
}

func (d *differ) number(object, field string, from, to int) {
	d.modify(object, field, strconv.Itoa(from), strconv.Itoa(to))
}

func (d *differ) add(object, value string) {
	d.changes = append(d.changes, Change{Operation: Add, Object: object, To: value})
}

func (d *differ) remove(object, value string) {
	d.changes = append(d.changes, Change{Operation: Remove, Object: object, From: value})
}

// match compares two lists of objects that are known by name: first what is
// gone or in both, in a's order, then what is new, in b's.
func match[T any](a, b []T, name func(T) string, gone func(T), both func(a, b T), come func(T)) {
	index := func(list []T) map[string]T {
		m := make(map[string]T, len(list))
		for _, item := range list {
			m[name(item)] = item
		}
		return m
	}
	before, after := index(a), index(b)
	for _, item := range a {
		if other, ok := after[name(item)]; ok {
			both(item, other)
		} else {
			gone(item)
		}
	}
	for _, item := range b {
		if _, ok := before[name(item)]; !ok {
			come(item)
		}
	}
}

// named is match for objects without parts: a title and a value each.
func named[T any](d *differ, a, b []T, name func(T) string, object func(T) (title, value string),
	compare func(title string, a, b T)) {
	match(a, b, name,
		func(item T) { d.remove(object(item)) },
		func(a, b T) { title, _ := object(a); compare(title, a, b) },
		func(item T) { d.add(object(item)) })
}

// role says of a role that only one of the nodes has that it comes or goes, and returns both to compare part by part:
// the missing one is the other's alone, without the parts that come or go with it. Both are nil if no node has the role.
func role[T any](d *differ, title string, a, b *T, settings func(*T) string, alone func(*T) *T) (*T, *T) {
	switch {
	case a == nil && b == nil:
		return nil, nil
	case a == nil:
		d.add(title, settings(b))
		return alone(b), b
	case b == nil:
		d.remove(title, settings(a))
		return a, alone(a)
	}
	return a, b
}

// unsaid are the settings of a role that its parts say.
func unsaid[T any](*T) string { return "" }

func (d *differ) domain(a, b Domain) {
	d.modify("domain", "block", a.Block.Prefix().String(), b.Block.Prefix().String())
	d.number("domain", "mtu", a.MTU, b.MTU)
	d.number("domain", "overhead", a.Overhead, b.Overhead)
	named(d, a.Locators, b.Locators, netip.Prefix.String,
		func(p netip.Prefix) (string, string) { return "domain: locator " + p.String(), "" },
		func(string, netip.Prefix, netip.Prefix) {})
	named(d, a.Infrastructure, b.Infrastructure, netip.Prefix.String,
		func(p netip.Prefix) (string, string) { return "domain: infrastructure " + p.String(), "" },
		func(string, netip.Prefix, netip.Prefix) {})
}

func (d *differ) secret(a, b *Node) {
	d.modify("node", "secretFile", a.SecretFile, b.SecretFile)
	if a.Secret != b.Secret {
		d.modify("node", "secret", "(not shown)", "(another, not shown)")
	}
}

func listener(a API) string {
	if !a.Metrics.IsValid() {
		return ""
	}
	return a.Metrics.String()
}

func (d *differ) edge(a, b *Edge) {
	a, b = role(d, "edge", a, b, edgeSettings, edgeAlone)
	if a == nil {
		return
	}
	d.modify("edge", "source", a.Source.String(), b.Source.String())
	d.modify("edge", "encapsulation", string(a.Encapsulation), string(b.Encapsulation))
	d.edgeHMAC(a.HMAC, b.HMAC)
	d.number("edge", "hopLimit", a.HopLimit, b.HopLimit)
	d.number("edge", "buckets", a.Buckets, b.Buckets)
	d.flowCache(a.FlowCache, b.FlowCache)
	d.shadow(a.Shadow, b.Shadow)
	d.peers(a.Peers, b.Peers)
	d.modify("edge", "etcd", a.Etcd.String(), b.Etcd.String())
	named(d, a.Interfaces, b.Interfaces,
		func(i EdgeInterface) string { return i.Name },
		func(i EdgeInterface) (string, string) {
			return "edge interface " + i.Name, fmt.Sprintf("side %s, mode %s", i.Side, i.Mode)
		},
		func(title string, a, b EdgeInterface) {
			d.modify(title, "side", string(a.Side), string(b.Side))
			d.modify(title, "mode", string(a.Mode), string(b.Mode))
		})
	d.services(a.Services, b.Services)
}

// edgeAlone is an edge without what is compared one by one.
func edgeAlone(e *Edge) *Edge {
	alone := *e
	alone.Interfaces, alone.Peers, alone.Services = nil, nil, nil
	return &alone
}

func edgeSettings(e *Edge) string {
	return fmt.Sprintf("source %s, encapsulation %s, hopLimit %d, buckets %d", e.Source, e.Encapsulation, e.HopLimit,
		e.Buckets)
}

// services also lists the backends of a service that comes or goes.
func (d *differ) services(a, b []Service) {
	match(a, b, func(s Service) string { return s.Name },
		func(s Service) {
			d.remove("service "+s.Name, serviceSettings(s))
			d.backends("service "+s.Name, s.Backends, nil)
			d.learned("service "+s.Name, s.Learned, nil)
		},
		func(a, b Service) {
			title := "service " + a.Name
			d.endpoint(title, a.Endpoint, b.Endpoint)
			d.continuity(title, a.Continuity, b.Continuity)
			d.quic(title, a.QUIC, b.QUIC)
			d.modify(title, "newConnections", a.NewConnections.String(), b.NewConnections.String())
			d.modify(title, "check", a.Check.String(), b.Check.String())
			d.backends(title, a.Backends, b.Backends)
			d.learned(title, a.Learned, b.Learned)
		},
		func(s Service) {
			d.add("service "+s.Name, serviceSettings(s))
			d.backends("service "+s.Name, nil, s.Backends)
			d.learned("service "+s.Name, nil, s.Learned)
		})
}

func serviceSettings(s Service) string {
	return fmt.Sprintf("vip %s, %s", s.Endpoint, s.Continuity)
}

func (d *differ) endpoint(title string, a, b Endpoint) {
	d.modify(title, "vip", a.VIP.String(), b.VIP.String())
	d.modify(title, "protocol", string(a.Protocol), string(b.Protocol))
	d.modify(title, "port", FormatPort(a.Port), FormatPort(b.Port))
}

func (d *differ) backends(service string, a, b []Backend) {
	named(d, a, b,
		func(b Backend) string { return b.Name },
		func(b Backend) (string, string) {
			return service + ": backend " + b.Name, fmt.Sprintf("sid %s, weight %d, state %s", b.SID, b.Weight, b.State)
		},
		func(title string, a, b Backend) {
			d.modify(title, "sid", a.SID.String(), b.SID.String())
			d.number(title, "weight", a.Weight, b.Weight)
			d.modify(title, "state", string(a.State), string(b.State))
			d.modify(title, "agent", agentText(a.Agent), agentText(b.Agent))
		})
}

func (d *differ) host(a, b *Host) {
	a, b = role(d, "host", a, b, unsaid[Host],
		func(h *Host) *Host { return &Host{Cgroup: h.Cgroup, Source: h.Source} })
	if a == nil {
		return
	}
	d.modify("host", "cgroup", a.Cgroup, b.Cgroup)
	d.modify("host", "source", addressText(a.Source), addressText(b.Source))
	d.learners(a.Learners, b.Learners)
	d.hostHMAC(a.HMAC, b.HMAC)
	named(d, a.Interfaces, b.Interfaces,
		func(i HostInterface) string { return i.Name },
		func(i HostInterface) (string, string) { return "host interface " + i.Name, "mode " + string(i.Mode) },
		func(title string, a, b HostInterface) { d.modify(title, "mode", string(a.Mode), string(b.Mode)) })
	named(d, a.SIDs, b.SIDs,
		func(s SID) string { return s.Prefix.String() },
		func(s SID) (string, string) { return "sid " + s.Prefix.String(), s.Behavior.String() },
		func(title string, a, b SID) {
			d.modify(title, "behavior", a.Behavior.String(), b.Behavior.String())
			d.modify(title, "backup", addressText(a.Backup), addressText(b.Backup))
		})
	named(d, a.Services, b.Services,
		func(s HostService) string { return s.Name },
		func(s HostService) (string, string) {
			return "host service " + s.Name, fmt.Sprintf("vip %s, accept %s", s.Endpoint, s.Accept)
		},
		func(title string, a, b HostService) {
			d.endpoint(title, a.Endpoint, b.Endpoint)
			d.modify(title, "accept", a.Accept.String(), b.Accept.String())
			d.modify(title, "load", a.Load.String(), b.Load.String())
			d.modify(title, "quic", strconv.FormatBool(a.QUIC), strconv.FormatBool(b.QUIC))
			d.modify(title, "check", a.Check.String(), b.Check.String())
		})
}
