// Package southboundtest makes certificates for tests of head-ends and controllers.
package southboundtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sextant/agent/southbound"
)

// Authority signs certificates, and keeps them in a directory: NAME.pem and NAME.key.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const validity = 24 * time.Hour

// NewAuthority makes an authority whose own certificate is ca.pem.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	a := &Authority{dir: dir}
	a.cert, a.key = a.sign(t, "ca", &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(validity),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// Leaf makes a certificate for both sides of TLS at some addresses, and returns its files.
func (a *Authority) Leaf(t testing.TB, name string, at ...netip.Addr) southbound.Files {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, address := range at {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	a.sign(t, name, template)
	return southbound.Files{CA: filepath.Join(a.dir, "ca.pem"),
		Certificate: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key")}
}

func (a *Authority) sign(t testing.TB, name string, template *x509.Certificate) (
	*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	for ending, block := range map[string]pem.Block{
		".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(t, os.WriteFile(filepath.Join(a.dir, name+ending), pem.EncodeToMemory(&block), 0o600))
	}
	return cert, key
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
