package archive

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"sextant/config"
)

const (
	// A member that disappeared without closing is noticed after the sum of both.
	keepAliveTime, keepAliveTimeout = 10 * time.Second, 5 * time.Second
	// signInTimeout bounds the exchange of a password for a token, which happens while connecting.
	signInTimeout = 2 * time.Second
	// maxAnswer bounds what a foreign hand in etcd can make an edge hold in memory.
	maxAnswer = 256 << 20
	// receiveWindow lets records come without waiting for acknowledgements: the edge that reads
	// them waits to start.
	receiveWindow = 16 << 20
)

// connect opens a client. Whether a server answers shows with the first request, or with the
// password.
func connect(ctx context.Context, e *config.Etcd) (*clientv3.Client, error) {
	options := clientv3.Config{
		Endpoints: e.Endpoints, Username: e.Username, Logger: zap.NewNop(),
		DialTimeout:       signInTimeout,
		DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallRecvMsgSize: maxAnswer,
		DialOptions: []grpc.DialOption{grpc.WithInitialWindowSize(receiveWindow),
			grpc.WithInitialConnWindowSize(receiveWindow)},
	}
	if deadline, ok := ctx.Deadline(); ok {
		options.DialTimeout = min(signInTimeout, max(time.Until(deadline), time.Millisecond))
	}
	if e.PasswordFile != "" {
		text, err := os.ReadFile(e.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("read passwordFile: %w", err)
		}
		if options.Password = strings.TrimSpace(string(text)); options.Password == "" {
			return nil, fmt.Errorf("passwordFile %s is empty; write the password of %s into it",
				e.PasswordFile, e.Username)
		}
	}
	if strings.HasPrefix(e.Endpoints[0], "https:") {
		var err error
		if options.TLS, err = tlsConfig(e.TLS); err != nil {
			return nil, err
		}
	}
	return clientv3.New(options)
}

func tlsConfig(t config.TLSFiles) (*tls.Config, error) {
	c := &tls.Config{}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.ca %s holds no certificate; write certificates in PEM "+
				"into it", t.CA)
		}
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("read tls.certificate and tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// reason takes out of an error what gRPC wraps around it.
func reason(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer in time: %w", err)
	}
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Message())
	}
	return err
}
