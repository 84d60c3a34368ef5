// Package authority signs certificates for labs and tests, whose daemons speak TLS with each other.
package authority

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
	"time"
)

// validity is for how long certificates are valid: longer than a lab is up.
const validity = 24 * time.Hour

// Authority signs certificates. Its own key is in memory alone.
type Authority struct {
	pair   Pair
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// Pair is a certificate and its key, as PEM.
type Pair struct{ Certificate, Key []byte }

// New makes an authority.
func New(name string) (*Authority, error) {
	a := &Authority{}
	var err error
	a.pair, a.key, err = a.sign(&x509.Certificate{IsCA: true,
		Subject:               pkix.Name{CommonName: name},
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a, err
}

// Certificate is the authority's own, which proves those that it signed, as PEM.
func (a *Authority) Certificate() []byte { return a.pair.Certificate }

// Sign makes a certificate for either side of TLS at some addresses.
func (a *Authority) Sign(name string, at ...netip.Addr) (Pair, error) {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, address := range at {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	pair, _, err := a.sign(template)
	return pair, err
}

// sign completes a certificate. The first one signs itself, and then the others.
func (a *Authority) sign(template *x509.Certificate) (Pair, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, nil, err
	}
	a.serial++
	template.SerialNumber, template.NotAfter = big.NewInt(a.serial), time.Now().Add(validity)
	signer := a.key
	if a.cert == nil {
		a.cert, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, nil, err
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, key, nil
}
