package fabric

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"time"
)

// keysLast is for how long the keys of a lab are valid: longer than it is up.
const keysLast = 24 * time.Hour

// newKeys makes an authority and certificates that it signed, valid for either side of TLS at the
// controller's address, as PEM: ca.pem, and NAME.pem and NAME.key of each name.
func newKeys(names ...string) (map[string]string, error) {
	files := map[string]string{}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject: pkix.Name{CommonName: "lab"}, NotAfter: time.Now().Add(keysLast),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	signer, err := sign(files, "ca", ca, ca, nil)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		_, err := sign(files, name, &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 2),
			Subject: pkix.Name{CommonName: name}, NotAfter: ca.NotAfter,
			IPAddresses: []net.IP{net.ParseIP(strings.Trim(smoothieControl, "[]"))},
			KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
				x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, ca, signer)
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// sign adds a certificate and its key to files. Without a signer, the certificate signs itself.
func sign(files map[string]string, name string, template, parent *x509.Certificate,
	signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	files[name+".pem"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	files[name+".key"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: private}))
	return key, nil
}
