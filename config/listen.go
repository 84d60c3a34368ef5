package config

import (
	"fmt"
	"net/netip"
)

// Listen is where an API is served over TLS 1.3, and to whom. It is part of a controller's file,
// too. All files are read anew when they change.
type Listen struct {
	// local address and port
	Address netip.AddrPort `key:"address" yaml:"address"`
	// absolute paths of PEM files: what the daemon shows
	Certificate string `key:"certificate" yaml:"certificate"`
	// private key of the certificate, with the mode 0600 or 0640
	Key string `key:"key" yaml:"key"`
	// absolute path of a PEM file with who signs the certificates of clients; "": they need none
	ClientCA string `key:"clientCA" yaml:"clientCA" omit:"zero"`
	// absolute path of the file of tokens, as the command token makes it
	Tokens string `key:"tokens" yaml:"tokens"`
}

// Faults checks an object of that path.
func (l *Listen) Faults(path string) []*Problem {
	c := &checker{}
	if !l.Address.IsValid() || l.Address.Port() == 0 {
		c.invalid(join(path, "address"), "no address is given to listen on",
			`write it like "[fd00:5e::1]:9479"`)
	}
	for _, file := range []struct{ key, path string }{
		{"certificate", l.Certificate}, {"key", l.Key}, {"tokens", l.Tokens},
	} {
		if file.path == "" {
			c.invalid(join(path, file.key), "no file is given: the API is served over TLS, to "+
				"those who have tokens", "name a file by its absolute path")
		} else {
			c.directory(join(path, file.key), file.path)
		}
	}
	if l.ClientCA != "" {
		c.directory(join(path, "clientCA"), l.ClientCA)
	}
	return c.problems
}

// String names everything that can differ; "none" for nil.
func (l *Listen) String() string {
	if l == nil {
		return "none"
	}
	return fmt.Sprintf("%s, certificate %s, key %s, clientCA %s, tokens %s", l.Address,
		l.Certificate, l.Key, l.ClientCA, l.Tokens)
}
