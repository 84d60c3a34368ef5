package peer

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"

	"sextant/agent/signing"
	"sextant/packet/flow"
)

// Secret returns the cluster's secret as the node has it now.
type Secret func(context.Context) (flow.Secret, error)

// Answer lets nodes of the cluster alone ask a handler, which answers GET requests for its path
// with something short. They sign the path and the address that they ask, so that nobody passes
// another node's answer off as this one's.
func (c *Challenges) Answer(secret Secret, to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := secret(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		subject := subjectOf(addressOf(r), r.URL.RequestURI())
		question, admitted := c.Admit(w, r, signing.Counts, subject, key)
		if !admitted {
			return
		}
		told := &answer{header: http.Header{}, status: http.StatusOK}
		to.ServeHTTP(told, r)
		maps.Copy(w.Header(), told.header)
		if told.status == http.StatusOK { // what is signed is never a failure
			signature := question.SignAnswer(key, signing.DigestOf(told.body.Bytes()))
			w.Header().Set(SignatureHeader, signature.String())
		}
		w.WriteHeader(told.status)
		_, _ = w.Write(told.body.Bytes()) // a client that is gone needs no answer
	})
}

// subjectOf is what a request asks of which node.
func subjectOf(address netip.AddrPort, uri string) string { return address.String() + uri }

// addressOf is the address of this node that a request came to.
func addressOf(r *http.Request) netip.AddrPort {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := local.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// answer is what a handler tells, until it is signed.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write is http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
