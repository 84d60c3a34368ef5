package config

import (
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strings"

	"sextant/packet/srv6"
)

// Bounds of the node file.
const (
	maxCandidates     = srv6.MaxCarrierCSIDs
	maxInfrastructure = 4         // INFRASTRUCTURE_PREFIXES in bpf/include/address.h
	maxLocators       = 4         // LOCATORS_MAX in bpf/include/guard.h
	maxSIDs           = 16        // SIDS_MAX in bpf/include/host.h
	maxEdgeServices   = 1<<16 - 1 // an index of 16 bits, 0 left out
	// SERVICES_MAX in bpf/, of which a host keeps one for what belongs to none
	maxHostServices  = 1023
	maxName          = 63 // of nodes, services and backends: they are labels of metrics
	maxInterfaceName = 15 // IFNAMSIZ - 1
	maxSocketPath    = 107
)

var (
	policies = []Policy{Always, Static, Dynamic, Average, Delay}
)

// Known reports whether hosts have the policy.
func (p Policy) Known() bool { return slices.Contains(policies, p) }

// Validate checks the rules that hold between the values of a node and
// returns all breaches, in the order of the file's schema.
func Validate(n *Node) []*Problem { return validateAfter(n, nil) }

// validateAfter is Validate of a node that differs from a valid one in the services of its edge
// alone: those that are the same are compared with the others, and not looked into again. Nil is no
// such node.
func validateAfter(n, valid *Node) []*Problem {
	c := &checker{node: n, anew: n}
	if valid != nil {
		c.valid = valid.Edge.Services
		c.anew = n.changedAlone(c.valid)
	}
	all := objectOf(reflect.TypeFor[Node](), "", "")
	if !all.isSound(reflect.ValueOf(c.anew).Elem()) {
		c.settings("", all, reflect.ValueOf(n).Elem())
	}
	c.name("node", "node", n.Name)
	c.domain()
	c.secret()
	c.directory("state", n.State)
	c.socket("api.socket", n.API.Socket)
	if l := n.API.Listen; l != nil {
		c.problems = append(c.problems, l.Faults("api.listen")...)
		if l.Address == n.API.Metrics {
			c.conflict("api.listen.address", "it is that of api.metrics",
				"choose another port")
		}
	}
	if len(n.Roles()) == 0 && n.Routing == nil {
		c.invalid("", "the node has no role",
			fmt.Sprintf("add \"%s:\" or \"routing:\"", strings.Join(knownRoles(), `:", "`)))
	}
	for _, s := range n.sections() {
		s.check(c)
	}
	return c.problems
}

// changedAlone is a node without services that are the same at the same place of a list.
func (n *Node) changedAlone(list []Service) *Node {
	c, edge := *n, *n.Edge
	c.Edge, edge.Services = &edge, nil
	for i := range n.Edge.Services {
		if s := &n.Edge.Services[i]; i >= len(list) || !sharedBy(s, &list[i]) {
			edge.Services = append(edge.Services, *s)
		}
	}
	return &c
}

// sameServices reports whether two lists have services of the same names and endpoints, at the same
// places.
func sameServices(a, b []Service) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Endpoint != b[i].Endpoint {
			return false
		}
	}
	return true
}

// checker collects the breaches of one node.
type checker struct {
	node     *Node
	valid    []Service      // of a node from which this one was made, if it was
	anew     *Node          // without the services that are the same
	owners   unique[string] // roles of interfaces
	problems []*Problem
}

func (c *checker) add(kind error, path, text, mend string, about []string) {
	c.problems = append(c.problems, &Problem{Kind: kind, Path: path, Text: text, Mend: mend,
		about: about})
}

func (c *checker) invalid(path, text, mend string, about ...string) {
	c.add(ErrInvalid, path, text, mend, about)
}

func (c *checker) conflict(path, text, mend string, about ...string) {
	c.add(ErrConflict, path, text, mend, about)
}

// number checks a range, bounds included.
func (c *checker) number(path, what string, value, low, high int) {
	if value < low || value > high {
		c.invalid(path, fmt.Sprintf("%s %d is out of range", what, value),
			fmt.Sprintf("write %d to %d", low, high))
	}
}

// name checks a name that is used in addresses of the API and in metrics.
func (c *checker) name(path, what, name string) {
	ok := name != "" && len(name) <= maxName && alphanumeric(rune(name[0]))
	for _, r := range name {
		ok = ok && (alphanumeric(r) || strings.ContainsRune("-_.", r))
	}
	if !ok {
		c.invalid(path, fmt.Sprintf("%q is no name for a %s", name, what),
			fmt.Sprintf("use 1 to %d letters, digits, dots, dashes and underscores, a letter or "+
				"digit first", maxName))
	}
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func (c *checker) interfaceName(path, name string) {
	if name == "" || name == "." || name == ".." || len(name) > maxInterfaceName ||
		strings.ContainsAny(name,
			"/: \t\n") {
		c.invalid(path, fmt.Sprintf("%q is no name of a network interface", name),
			"take one of those that \"ip link\" shows")
	}
}

func (c *checker) directory(where, dir string) {
	if !path.IsAbs(dir) {
		c.invalid(where, fmt.Sprintf("%q is not an absolute path", dir), "begin it with /")
	}
}

func (c *checker) socket(where, socket string) {
	c.directory(where, socket)
	if len(socket) > maxSocketPath {
		c.invalid(where, fmt.Sprintf("the path of the socket has %d bytes", len(socket)),
			fmt.Sprintf("a Unix socket's path has at most %d", maxSocketPath))
	}
}

func (c *checker) domain() {
	d := c.node.Domain
	c.leastMTU(d)
	c.some("domain.infrastructure", len(d.Infrastructure), "no infrastructure prefix is given",
		"name the prefix of the addresses that edges send from")
	c.count("domain.infrastructure", "infrastructure prefixes", len(d.Infrastructure),
		maxInfrastructure)
	for i, p := range d.Infrastructure {
		if p.IsValid() && p.Bits() == 0 {
			c.invalid(fmt.Sprintf("domain.infrastructure[%d]", i),
				"the prefix ::/0 would accept SRv6 from everywhere",
				"name the prefix of the addresses that edges send from")
		}
	}
	c.locators(d)
}

// leastMTU checks that the domain carries the least MTU of IPv6 (RFC 8200 section 5): clients do
// not go below it, whatever
// they are told (RFC 8201 section 4), and outer packets are not fragmented.
func (c *checker) leastMTU(d Domain) {
	if inner := d.MTU - d.Overhead; d.MTU >= minInnerMTU && inner < minInnerMTU &&
		c.node.servesIPv6() {
		c.invalid("domain.mtu", fmt.Sprintf(
			"mtu %d leaves %d bytes inside of the encapsulation's %d, and IPv6 clients "+
				"send packets of %d", d.MTU, inner, d.Overhead, minInnerMTU),
			fmt.Sprintf("let the domain's links carry %d bytes, and write that",
				minInnerMTU+d.Overhead), "domain.overhead")
	}
}

// servesIPv6 reports whether one of the node's services has an IPv6 address.
func (n *Node) servesIPv6() bool {
	return n.Edge != nil && slices.ContainsFunc(n.Edge.Services,
		func(s Service) bool { return s.VIP.Is6() }) ||
		n.Host != nil && slices.ContainsFunc(n.Host.Services,
			func(s HostService) bool { return s.VIP.Is6() })
}

// locators checks that what is guarded as SIDs is not what others have to reach.
func (c *checker) locators(d Domain) {
	c.count("domain.locators", "locators", len(d.Locators), maxLocators)
	for i, l := range d.Locators {
		where := fmt.Sprintf("domain.locators[%d]", i)
		if l.IsValid() && l.Bits() == 0 {
			c.invalid(where, "the prefix ::/0 would refuse all IPv6 from outside",
				"name the prefixes of SIDs that lie outside the block")
		}
		for _, p := range d.Infrastructure {
			if l.IsValid() && p.IsValid() && l.Bits() > 0 && l.Overlaps(p) {
				c.conflict(where, fmt.Sprintf("locator %s overlaps the infrastructure prefix %s", l,
					p),
					"take SIDs from a prefix of their own", "domain.infrastructure")
			}
		}
	}
}

// locator finds the one in which an address lies.
func (c *checker) locator(a netip.Addr) (netip.Prefix, bool) {
	for _, p := range c.node.Domain.Locators {
		if p.IsValid() && p.Contains(a) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func (c *checker) secret() {
	given := c.node.Secret != [16]byte{}
	switch {
	case c.node.SecretFile != "":
		c.directory("secretFile", c.node.SecretFile)
	case !given:
		c.invalid("secret", "the cluster's secret is missing",
			`add "secret: " with 32 hexadecimal digits (openssl rand -hex 16), or "secretFile: " with a path`)
	}
}

// endpoint checks an address that clients connect to. Clients are outside the SR domain.
func (c *checker) endpoint(where string, e Endpoint) {
	vip := join(where, "vip")
	if !plainUnicast(e.VIP) {
		c.invalid(vip, fmt.Sprintf("vip %s is not a plain unicast address", e.VIP),
			"use an address that clients can connect to")
		return
	}
	if block := c.node.Domain.Block; block.Contains(e.VIP) {
		c.invalid(vip, fmt.Sprintf("vip %s lies in the SID block %s", e.VIP, block.Prefix()),
			"use an address outside the SR domain", "domain.block")
	}
	if p, ok := c.locator(e.VIP); ok {
		c.invalid(vip, fmt.Sprintf("vip %s lies in the locator %s", e.VIP, p),
			"use an address outside the SR domain", "domain.locators")
	}
	if p, ok := c.infrastructure(e.VIP); ok {
		c.invalid(vip, fmt.Sprintf("vip %s lies in the infrastructure prefix %s", e.VIP, p),
			"use an address outside the SR domain", "domain.infrastructure")
	}
}

// infrastructure finds the prefix of the domain in which an address lies.
func (c *checker) infrastructure(a netip.Addr) (netip.Prefix, bool) {
	for _, p := range c.node.Domain.Infrastructure {
		if p.IsValid() && p.Contains(a) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// plainUnicast leaves out what no distant client can connect to.
func plainUnicast(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return false
	}
	reserved := a.Is4() && (a.As4()[0] == 0 || a.As4()[0] >= 240)
	return !reserved && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() &&
		!a.IsLinkLocalUnicast()
}

// count checks the length of a list.
func (c *checker) count(path, what string, n, limit int) {
	if n > limit {
		c.invalid(path, fmt.Sprintf("%d %s are given", n, what),
			fmt.Sprintf("the data plane holds %d", limit))
	}
}

// some checks that a list is not empty.
func (c *checker) some(path string, n int, text, mend string) {
	if n == 0 {
		c.invalid(path, text, mend)
	}
}

// unique reports the second user of a key, which path names.
type unique[K comparable] map[K]string

// add returns the earlier owner of the key, if there is one.
func (u unique[K]) add(key K, owner string) (earlier string, taken bool) {
	if earlier, taken = u[key]; !taken {
		u[key] = owner
	}
	return earlier, taken
}

// What mends a key that has two users.
const (
	deleteOne = "delete one of the two"
	renameOne = "rename or delete one of the two"
)

// once files a conflict if the key has a user already. The text has a verb for the key, and others
// for what follows.
func (u unique[K]) once(c *checker, path string, key K, mend, text string, more ...any) {
	if _, taken := u.add(key, path); taken {
		c.conflict(path, fmt.Sprintf(text, append([]any{key}, more...)...), mend)
	}
}

// serviceNames and endpoints are checked the same way for both roles.
func (c *checker) distinct(where, name string, e Endpoint, names unique[string],
	endpoints unique[Endpoint]) {
	names.once(c, join(where, "name"), name, renameOne, "service %q is given twice")
	if owner, taken := endpoints.add(e, name); taken && e.VIP.IsValid() {
		c.conflict(join(where, "vip"), fmt.Sprintf("vip %s is used by service %q", e, owner),
			"choose another port or delete it", join(where, "port"), join(where, "protocol"))
	}
}
