package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"sextant/config"
)

// The check of the gRPC health checking protocol (grpc/grpc, doc/health-checking.md), over HTTP/2
// without TLS. Its messages have one field each, so they are written by hand.
const (
	grpcMethod   = "/grpc.health.v1.Health/Check"
	grpcServing  = 1 // HealthCheckResponse.ServingStatus
	grpcOK       = "0"
	grpcMaxBytes = 1 << 10
)

var grpcStatuses = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

// caller is a connection over which the method is called.
type caller struct {
	*http.ClientConn
	to    string
	asked bool // before
}

// openCaller connects.
func (t Target) openCaller(ctx context.Context) (line, error) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := t.connect(ctx)
			if err != nil {
				return nil, err
			}
			c.unwatch() // each call has a time of its own
			return c, nil
		},
		Protocols: new(http.Protocols), DisableCompression: true, MaxResponseHeaderBytes: maxAnswer,
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	conn, err := transport.NewClientConn(ctx, "http", t.Address.String())
	if err != nil {
		return nil, explain(ctx, "call "+grpcMethod, err)
	}
	return &caller{ClientConn: conn, to: t.Address.String()}, nil
}

// ask is that of [line]. What comes without a question is the connection's own affair in HTTP/2:
// each call has a number, and answers to others end the connection or are dropped.
func (l *caller) ask(ctx context.Context, c *config.Check, keep bool) (kept bool, err error) {
	again := l.asked
	l.asked = true
	if again && l.Available() == 0 {
		return false, errStale
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.to+grpcMethod,
		bytes.NewReader(grpcRequest(c.Service)))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := l.RoundTrip(request)
	switch {
	case err != nil && again && ctx.Err() == nil && l.Available() == 0:
		return false, errStale // it was closed, or is to be, as the question was on its way
	case err != nil:
		return false, explain(ctx, "call "+grpcMethod, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, grpcMaxBytes))
	if err != nil {
		return false, explain(ctx, "call "+grpcMethod, err)
	}
	if err := grpcFailure(response); err != nil {
		return false, fmt.Errorf("call %s: %w", grpcMethod, err)
	}
	status, err := grpcStatus(body)
	if err == nil && status != grpcServing {
		err = fmt.Errorf("the server says %s", grpcStatusName(status))
	}
	if err != nil {
		return false, fmt.Errorf("call %s for service %q: %w", grpcMethod, c.Service, err)
	}
	return keep && len(body) < grpcMaxBytes && l.Available() > 0, nil
}

// grpcRequest is a HealthCheckRequest in its frame: no compression, length, message.
func grpcRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = protowire.AppendTag(message, 1, protowire.BytesType)
		message = protowire.AppendString(message, service)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// grpcFailure finds a status other than OK. It is in the trailers, or in the headers of an answer
// without a message.
func grpcFailure(r *http.Response) error {
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d", r.StatusCode)
	}
	status, message := r.Trailer.Get("Grpc-Status"), r.Trailer.Get("Grpc-Message")
	if status == "" {
		status, message = r.Header.Get("Grpc-Status"), r.Header.Get("Grpc-Message")
	}
	if status != grpcOK {
		return fmt.Errorf("gRPC status %q %s", status, message)
	}
	return nil
}

// grpcStatus reads the status of a HealthCheckResponse in its frame; 0 if it has none.
func grpcStatus(body []byte) (uint64, error) {
	if len(body) < 5 || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
		return 0, errors.New("the answer is no gRPC message")
	}
	status := uint64(0)
	for message := body[5:]; len(message) > 0; {
		field, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return 0, fmt.Errorf("the answer is no protobuf: %w", protowire.ParseError(n))
		}
		if field == 1 && kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(message)
			status, _ = protowire.ConsumeVarint(message[tag:])
		}
		message = message[n:]
	}
	return status, nil
}

func grpcStatusName(status uint64) string {
	if status < uint64(len(grpcStatuses)) {
		return grpcStatuses[status]
	}
	return fmt.Sprint(status)
}
