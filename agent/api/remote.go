package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
)

// Remote is how a daemon elsewhere is reached, over TLS 1.3.
type Remote struct {
	Address string // HOST:PORT, as its certificate names the host
	Token   string
	// CA are certificates in PEM: the daemon's, or that of who signed it; none: those that this
	// machine trusts.
	CA []byte
	// Certificate and Key are PEM, for a daemon that wants certificates of clients; or none.
	Certificate, Key []byte
}

// NewRemoteClient makes a client for a daemon elsewhere: an agent, or another one whose API is
// served alike. It connects when it is used. The error says what can't be used of r.
func NewRemoteClient(daemon string, r Remote) (*Client, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if len(r.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(r.CA) {
			return nil, errors.New("the CA holds no certificate; name a file of certificates in " +
				"PEM")
		}
	}
	if len(r.Certificate) > 0 || len(r.Key) > 0 {
		pair, err := tls.X509KeyPair(r.Certificate, r.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate and key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &Client{daemon: daemon, socket: r.Address, base: "https://" + r.Address,
		start: "api.listen in the " + daemon + "'s file", token: r.Token,
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: c}}}, nil
}

// NewFailingClient makes a client whose calls end with an error.
func NewFailingClient(err error) *Client { return &Client{broken: err} }

// untrusted says what would make a daemon's certificate trusted; nil if that is not what failed.
func (c *Client) untrusted(err error) error {
	var certificate *tls.CertificateVerificationError
	if !errors.As(err, &certificate) {
		return nil
	}
	return fmt.Errorf("%w at %s: its certificate is not trusted: %w; name the certificate, or "+
		"that "+
		"of who signed it, with --ca", c.unreachable(), c.socket, certificate.Err)
}
