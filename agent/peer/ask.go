package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"sextant/agent/signing"
	"sextant/packet/flow"
)

// Bounds of what an answer may cost, in bytes.
const (
	maxAnswer  = 16 << 20
	maxRefusal = 1 << 10 // of its message
	maxHeader  = 16 << 10
)

// Ask returns what a node's handler (Answer) tells at a path. It follows no redirection and asks no
// proxy. The error says why the node can't be asked, or what it answers instead.
func Ask(ctx context.Context, secret flow.Secret, node netip.AddrPort,
	path string) ([]byte, error) {
	transport := &http.Transport{
		DialContext: new(net.Dialer).DialContext, MaxResponseHeaderBytes: maxHeader,
	}
	defer transport.CloseIdleConnections()
	a := asker{ctx, transport, "http://" + node.String() + path}
	response, err := a.get(signing.Request{}, nil)
	if err != nil {
		return nil, err
	}
	challenge, refusal := response.Header.Get(ChallengeHeader), refusalOf(response)
	if response.StatusCode != http.StatusUnauthorized || challenge == "" {
		return nil, refusal
	}
	question := signing.Request{
		Of: signing.Counts, Subject: subjectOf(node, path), Challenge: challenge, Nonce: NewNonce(),
	}
	signature := question.Sign(secret)
	if response, err = a.get(question, &signature); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusalOf(response)
	}
	defer response.Body.Close()
	told, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(told) > maxAnswer:
		return nil, fmt.Errorf("it answers more than %d bytes", maxAnswer)
	}
	return told, authentic(response, secret, question, told)
}

// asker asks one node for one thing.
type asker struct {
	ctx       context.Context
	transport *http.Transport
	address   string
}

// get sends a request; signed if there is a signature.
func (a asker) get(question signing.Request, signature *signing.MAC) (*http.Response, error) {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.address, nil)
	if err != nil {
		return nil, err
	}
	SetHeaders(request, question, signature)
	return a.transport.RoundTrip(request)
}

// SetHeaders makes a request that question; it is signed if there is a signature.
func SetHeaders(request *http.Request, question signing.Request, signature *signing.MAC) {
	request.Header.Set(VersionHeader, signing.Version)
	if signature != nil {
		request.Header.Set(ChallengeHeader, question.Challenge)
		request.Header.Set(NonceHeader, question.Nonce.String())
		request.Header.Set(SignatureHeader, signature.String())
	}
}

// refusalOf is what an answer says that tells nothing, and closes it.
func refusalOf(response *http.Response) error {
	defer response.Body.Close()
	version := response.Header.Get(VersionHeader)
	switch {
	case version == "" && response.StatusCode == http.StatusOK:
		return errors.New("it answers anyone, and proves nothing; run this Sextant there too")
	case version != "" && version != signing.Version:
		return fmt.Errorf("it speaks version %.10q of the exchange between nodes, and this one "+
			"version %s; run the same Sextant on both", version, signing.Version)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return err
	}
	if version == "" {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return fmt.Errorf("it answers %s: %.200s", response.Status, text)
}

// authentic says whether what was told is signed as the answer to the question.
func authentic(response *http.Response, secret flow.Secret, question signing.Request,
	told []byte) error {
	signature, err := signing.ParseMAC(response.Header.Get(SignatureHeader))
	if err != nil || !signature.Equal(question.SignAnswer(secret, signing.DigestOf(told))) {
		return errors.New("its answer is not signed with this cluster's secret for this " +
			"question; give all nodes the same secret")
	}
	return nil
}
