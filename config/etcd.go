package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Etcd is where the edges of a cluster keep the chains of their services for one that starts
// without memory.
type Etcd struct {
	// http or https, host and port of each member
	Endpoints []string `key:"endpoints" as:"etcd" style:"flow"`
	// of all keys; without a slash at the end
	Prefix string `key:"prefix" default:"/sextant"`
	// "": etcd asks for none
	Username string `key:"username" omit:"zero"`
	// absolute path; "" without Username
	PasswordFile string   `key:"passwordFile" omit:"zero"`
	TLS          TLSFiles `key:"tls" omit:"zero"`
}

// TLSFiles are absolute paths of PEM files, for TLS. The zero value trusts what the machine trusts,
// and shows no certificate.
type TLSFiles struct {
	// who signs the certificates of the other side; "": whom the machine trusts
	CA string `key:"ca" omit:"zero"`
	// what this node shows; "": nothing
	Certificate string `key:"certificate" omit:"zero"`
	// private key of the certificate, with the mode 0600 or 0640
	Key string `key:"key" omit:"zero"`
}

const (
	defaultEtcdPrefix = "/sextant"
	maxEtcdEndpoints  = 16
	maxEtcdPrefix     = 255
)

// parseEtcdEndpoint reads a URL of scheme, host and port, and no more.
func parseEtcdEndpoint(s string) (string, error) {
	u, err := url.Parse(s)
	plain := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == s
	if plain {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		plain = err == nil && port > 0 && etcdHost(u.Hostname())
	}
	if !plain {
		return "", invalid(fmt.Sprintf("%q is not an endpoint of etcd", s),
			`write it like "http://[fd00:5e::3]:2379" or "https://etcd1.example:2379"`)
	}
	return s, nil
}

// etcdHost accepts an address without a zone, or a name.
func etcdHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Zone() == ""
	}
	return host != "" && !strings.ContainsFunc(host,
		func(r rune) bool { return !alphanumeric(r) && r != '-' && r != '.' })
}

func (c *checker) etcd(e *Etcd) {
	if e == nil {
		return
	}
	c.some("edge.etcd.endpoints", len(e.Endpoints), "no endpoint of etcd is given",
		`add "http://[fd00:5e::3]:2379", or delete etcd`)
	c.count("edge.etcd.endpoints", "endpoints", len(e.Endpoints), maxEtcdEndpoints)
	secure, seen := e.secure(), unique[string]{}
	for i, endpoint := range e.Endpoints {
		at := fmt.Sprintf("edge.etcd.endpoints[%d]", i)
		seen.once(c, at, endpoint, deleteOne, "endpoint %s is given twice")
		if strings.HasPrefix(endpoint, "https:") != secure {
			c.conflict(at, "some endpoints are http, and some https",
				"write https for all of them, or http")
		}
	}
	c.etcdPrefix(e.Prefix)
	if (e.Username == "") != (e.PasswordFile == "") {
		c.invalid("edge.etcd", "username and passwordFile go together",
			"add the other one, or delete both",
			"edge.etcd.username", "edge.etcd.passwordFile")
	}
	c.etcdTLS(e.TLS, secure)
	for _, file := range []struct{ key, path string }{
		{"passwordFile", e.PasswordFile}, {"tls.ca", e.TLS.CA},
		{"tls.certificate", e.TLS.Certificate}, {"tls.key", e.TLS.Key},
	} {
		if file.path != "" {
			c.directory("edge.etcd."+file.key, file.path)
		}
	}
}

// secure is whether the first endpoint speaks TLS; the others have to do the same.
func (e *Etcd) secure() bool {
	return len(e.Endpoints) > 0 && strings.HasPrefix(e.Endpoints[0], "https:")
}

func (c *checker) etcdPrefix(prefix string) {
	odd := strings.ContainsFunc(prefix,
		func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_./", r) })
	if !strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") || odd ||
		len(prefix) > maxEtcdPrefix {
		c.invalid("edge.etcd.prefix", fmt.Sprintf("%q is no prefix of keys", prefix),
			fmt.Sprintf("write a path like %s: / first, not last, at most %d letters, digits, "+
				"and -_./", defaultEtcdPrefix, maxEtcdPrefix))
	}
}

func (c *checker) etcdTLS(t TLSFiles, secure bool) {
	if (t.Certificate == "") != (t.Key == "") {
		c.invalid("edge.etcd.tls", "certificate and key go together",
			"add the other one, or delete both",
			"edge.etcd.tls.certificate", "edge.etcd.tls.key")
	}
	if t != (TLSFiles{}) && !secure {
		c.conflict("edge.etcd.tls", "tls is of no use for endpoints of http",
			"write https in the endpoints, or delete tls",
			"edge.etcd.endpoints")
	}
}

// String names everything that can differ; "" for nil.
func (e *Etcd) String() string {
	if e == nil {
		return ""
	}
	words := []string{strings.Join(e.Endpoints, " "), "prefix " + e.Prefix}
	for _, w := range []struct{ key, value string }{
		{"username", e.Username}, {"passwordFile", e.PasswordFile},
		{"ca", e.TLS.CA}, {"certificate", e.TLS.Certificate}, {"key", e.TLS.Key},
	} {
		if w.value != "" {
			words = append(words, w.key+" "+w.value)
		}
	}
	return strings.Join(words, ", ")
}
