// Package southboundtest makes certificates for tests of head-ends and controllers.
package southboundtest

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"sextant/agent/access/authority"
	"sextant/agent/southbound"
)

// Authority signs certificates, and keeps them in a directory: NAME.pem and NAME.key.
type Authority struct {
	dir string
	of  *authority.Authority
}

// NewAuthority makes an authority whose own certificate is ca.pem.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	of, err := authority.New("test")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "ca.pem"), of.Certificate(), 0o600))
	return &Authority{dir, of}
}

// Leaf makes a certificate for both sides of TLS at some addresses, and returns its files.
func (a *Authority) Leaf(t testing.TB, name string, at ...netip.Addr) southbound.Files {
	t.Helper()
	pair, err := a.of.Sign(name, at...)
	must(t, err)
	files := southbound.Files{CA: filepath.Join(a.dir, "ca.pem"),
		Certificate: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key")}
	must(t, os.WriteFile(files.Certificate, pair.Certificate, 0o600))
	must(t, os.WriteFile(files.Key, pair.Key, 0o600))
	return files
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
