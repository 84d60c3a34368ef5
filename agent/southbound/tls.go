package southbound

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// Files are absolute paths of PEM files: who signs the other side's certificates, and what this
// side shows. They are read for each connection, so that new ones need no restart.
type Files struct {
	CA          string
	Certificate string
	Key         string
}

func (f Files) load() (*x509.CertPool, tls.Certificate, error) {
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, tls.Certificate{}, fmt.Errorf("read tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, tls.Certificate{}, fmt.Errorf("tls.ca %s holds no certificate; write "+
			"certificates in PEM into it", f.CA)
	}
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, tls.Certificate{}, fmt.Errorf("read tls.certificate and tls.key: %w", err)
	}
	return pool, pair, nil
}

// Server is TLS of the side that listens. The error says what is wrong with the files now.
func (f Files) Server() (*tls.Config, error) {
	_, _, err := f.load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pool, pair, err := f.load()
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
				ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
				NextProtos: []string{"h2"}}, err
		},
	}, err
}

// client is TLS of the side that connects.
func (f Files) client() (*tls.Config, error) {
	pool, pair, err := f.load()
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool,
		Certificates: []tls.Certificate{pair}}, err
}

// readToken reads a file that holds a token.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read tokenFile: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\n") {
		return "", fmt.Errorf("tokenFile %s does not hold one word; write the token of this "+
			"router into it", file)
	}
	return token, nil
}
