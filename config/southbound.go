package config

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Southbound is where a head-end takes paths of flows from: controllers, by gRPC over mutual TLS.
type Southbound struct {
	// host and port of each; the one of the highest epoch is followed
	Controllers []string `key:"controllers" as:"controller" style:"flow"`
	// what the controllers' topology calls this node; "": its name
	Router string `key:"router" omit:"zero"`
	// absolute path of a file that holds this router's token
	TokenFile string   `key:"tokenFile"`
	TLS       TLSFiles `key:"tls"`
	// whether changes may come ahead of a stream, by UDP: each stream opens a port for them
	Datagrams bool `key:"datagrams" default:"true" omit:"default"`
}

const maxControllers = 8

// parseController reads a host and a port.
func parseController(s string) (string, error) {
	u, err := url.Parse("//" + s)
	plain := err == nil && u.Host == s && etcdHost(u.Hostname()) &&
		strings.HasPrefix(s, "[") == strings.Contains(u.Hostname(), ":")
	if plain {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		plain = err == nil && port > 0
	}
	if !plain {
		return "", invalid(fmt.Sprintf("%q is not the host and port of a controller", s),
			`write it like "[fd00:5e::9]:9478" or "controller.example:9478"`)
	}
	return s, nil
}

func (c *checker) southbound(s *Southbound, flows int) {
	if s == nil {
		return
	}
	const where = "headend.southbound"
	if flows == 0 {
		c.invalid(where, "flows can have no paths of their own here",
			"add headend.flows, like 65536, or delete southbound", "headend.flows")
	}
	c.some(join(where, "controllers"), len(s.Controllers), "no controller is given",
		`add "[fd00:5e::9]:9478", or delete southbound`)
	c.count(join(where, "controllers"), "controllers", len(s.Controllers), maxControllers)
	seen := unique[string]{}
	for i, address := range s.Controllers {
		at := fmt.Sprintf("%s.controllers[%d]", where, i)
		seen.once(c, at, address, deleteOne, "controller %s is given twice")
	}
	for _, file := range []struct{ key, path string }{
		{"tokenFile", s.TokenFile}, {"tls.ca", s.TLS.CA},
		{"tls.certificate", s.TLS.Certificate}, {"tls.key", s.TLS.Key},
	} {
		if file.path == "" {
			c.invalid(join(where, file.key), "no file is given: controller and router show "+
				"certificates to each other, and the router its token",
				"name a file by its absolute path")
		} else {
			c.directory(join(where, file.key), file.path)
		}
	}
}

// String names everything that can differ; "" for nil.
func (s *Southbound) String() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%v, router %q, tokenFile %s, ca %s, certificate %s, key %s, datagrams %t",
		s.Controllers, s.Router, s.TokenFile, s.TLS.CA, s.TLS.Certificate, s.TLS.Key, s.Datagrams)
}
