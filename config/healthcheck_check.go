package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sextant/packet/srv6"
)

// Bounds of checks.
const (
	minCheckTimeout = 10 * time.Millisecond
)

func (c *checker) check(where string, s Service) {
	k := s.Check
	if k == nil {
		return
	}
	c.checkPath(where, s)
	where = join(where, "check")
	c.checkSettings(where, k)
	if k.Passive != nil {
		c.passive(join(where, "passive"), s)
	}
	for _, b := range s.Backends {
		if k.Function != 0 && b.SID.Is6() && k.SID(b.SID) != b.SID &&
			!singleLocator(c.node.Domain.Block, b) {
			c.invalid(join(where, "function"), fmt.Sprintf("sid %s of backend %q has no room for "+
				"a function behind it", b.SID, b.Name),
				"leave function out, so that the SID itself is checked", "edge.encapsulation")
			return
		}
	}
}

// checkSettings checks what checks of edges and of hosts have in common.
func (c *checker) checkSettings(where string, k *Check) {
	c.checkTimes(where, k)
	c.checkKind(where, k)
}

// singleLocator says whether the backend's SID is the block and one identifier.
func singleLocator(block srv6.Block, b Backend) bool {
	ids, err := block.CSIDs(b.SID)
	return err == nil && len(ids) == 1
}

func (c *checker) checkTimes(where string, k *Check) {
	if k.Interval < minCheckTimeout {
		return // it is out of range itself
	}
	if k.Timeout < minCheckTimeout || k.Timeout > k.Interval {
		c.invalid(join(where, "timeout"), fmt.Sprintf("timeout %v is out of range", k.Timeout),
			fmt.Sprintf("write %v to the interval, %v", minCheckTimeout, k.Interval),
			join(where, "interval"))
	}
}

// checkPath checks from where and to which port is checked.
func (c *checker) checkPath(service string, s Service) {
	where := join(service, "check")
	k := s.Check
	c.checkPort(where, s.Name, s.Endpoint, k)
	if k.Source.IsValid() && k.Source.Is4() != s.VIP.Is4() {
		c.invalid(join(where, "source"), fmt.Sprintf("source %s is not of the vip's address family",
			k.Source),
			"write an address of this machine to which hosts can answer", join(service, "vip"))
	}
}

func (c *checker) checkPort(where, service string, e Endpoint, k *Check) {
	if k.Port == 0 && k.Kind != CheckExec && (e.Port == AnyPort || e.Protocol == UDP) {
		c.invalid(where, fmt.Sprintf("service %q has no TCP port to check", service),
			"add a port to check, or choose kind exec", join(where, "kind"))
	}
}

// checkKind wants what the kind needs, and nothing that belongs to another.
func (c *checker) checkKind(where string, k *Check) {
	for _, f := range []struct {
		key   string
		given bool
		of    []CheckKind
	}{
		{"reuse", k.Reuse, []CheckKind{CheckHTTP, CheckHTTPS, CheckGRPC}},
		{"path", k.Path != "", []CheckKind{CheckHTTP, CheckHTTPS}},
		{"host", k.Host != "", []CheckKind{CheckHTTP, CheckHTTPS}},
		{"status", k.Status != StatusRange{}, []CheckKind{CheckHTTP, CheckHTTPS}},
		{"body", k.Body != "", []CheckKind{CheckHTTP, CheckHTTPS}},
		{"insecure", k.Insecure, []CheckKind{CheckHTTPS}},
		{"service", k.Service != "", []CheckKind{CheckGRPC}},
		{"command", len(k.Command) > 0, []CheckKind{CheckExec}},
	} {
		if f.given && !slices.Contains(f.of, k.Kind) {
			c.invalid(join(where, f.key), fmt.Sprintf("%s does not belong to kind %s", f.key,
				k.Kind),
				"leave it out, or choose kind "+alternatives(f.of), join(where, "kind"))
		}
	}
	switch {
	case k.Kind.ofHTTP() && !strings.HasPrefix(k.Path, "/"):
		c.invalid(join(where, "path"), fmt.Sprintf("%q is no path of a page", k.Path),
			"begin it with /", join(where, "kind"))
	case k.Kind.ofHTTP() && strings.ContainsAny(k.Path+k.Host, " \t\r\n"):
		c.invalid(where, "path or host has a space in it",
			"write %20 in a path, and a host name without spaces")
	case k.Kind == CheckExec && (len(k.Command) == 0 || !strings.HasPrefix(k.Command[0], "/")):
		c.invalid(join(where, "command"), "kind exec needs a command with an absolute path",
			`write it like [/usr/local/bin/check, "-v"]`, join(where, "kind"))
	}
}
