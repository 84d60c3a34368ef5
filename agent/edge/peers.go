package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/agent/peer"
	"sextant/agent/role"
	"sextant/agent/signing"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// An edge that starts without memory asks the other edges for the chains of its services, because
// theirs name the owners that a bucket had before. They answer on the port of their metrics. Both
// sides prove that they know the cluster's secret (signing.Request): nobody else gets chains, and
// nobody else can tell an edge where old connections are.

const (
	// ChainsPath is where an edge answers others at the metrics port.
	ChainsPath = "/v1/chains"
	// for all of them together; an edge must not wait longer to forward
	peersTimeout = 2 * time.Second
	maxRefusal   = 1 << 10 // bytes of a peer's error message
	// bytes of the headers of an answer
	maxPeerHeader = 16 << 10
)

// exchange is by what an edge that starts finds who had its buckets before: what other edges, etcd
// and this machine's disk know of the past, and what this edge lets them know.
type exchange struct {
	*role.Core
	found    *role.Discoveries
	services func() []Service // that run
	Journal  *journal
	etcd     *archivist                           // nil: the node file names none
	noted    map[config.Endpoint]*pool.Generation // what the journal was told last
	silent   map[netip.AddrPort]bool              // peers that did not answer in time
	askLater []question                           // that peers did not answer at the start
	pending  map[question]bool                    // of these, those that are still not answered
	lateTold chan late                            // answers to them
	ignored  uint64                               // places that named nobody this node can know
}

func newExchange(c *role.Core, found *role.Discoveries, services func() []Service) *exchange {
	return &exchange{Core: c, found: found, services: services, silent: map[netip.AddrPort]bool{},
		noted: map[config.Endpoint]*pool.Generation{}}
}

func (x *exchange) open(n *config.Node) {
	x.Journal = OpenJournal(n.State, n.Name, x.Log)
	x.etcd = openArchivist(n, x.Log)
}

func (x *exchange) close() {
	x.etcd.close()
	x.Journal.Close()
}

// askPeers returns the chains of a service, of so many buckets at most, as the peers have them, in
// the order of the configuration; those that do not answer in time, or wrongly, are left out with a
// warning, and asked again later. A peer that took all the time is not asked about further services
// now: an edge that is off would cost each of them as much.
func (x *exchange) askPeers(n *config.Node, e config.Endpoint, most int) [][]pool.Chain {
	ctx, cancel := context.WithTimeout(context.Background(), peersTimeout)
	defer cancel()
	answers := make([]chan peerAnswer, len(n.Edge.Peers))
	for i, peer := range n.Edge.Peers {
		answers[i] = make(chan peerAnswer, 1)
		switch {
		case isSelf(n.API.Metrics, peer):
			answers[i] <- peerAnswer{}
			continue
		case x.silent[peer]:
			answers[i] <- peerAnswer{err: errSilent}
			continue
		}
		go func() {
			chains, err := askPeer(ctx, signingSecret(n), peer, e.String(), most)
			answers[i] <- peerAnswer{chains, err, ctx.Err() != nil}
		}()
	}
	var all [][]pool.Chain
	for i, peer := range n.Edge.Peers {
		answer := <-answers[i]
		if answer.err != nil && !answered(answer.err) {
			x.askLater = append(x.askLater, question{peer, signingSecret(n), e, most})
		}
		if answer.err != nil && !errors.Is(answer.err, errSilent) {
			x.Log.Warn("an edge does not tell its chains", "peer", peer, "service", e,
				"error", answer.err)
			x.silent[peer] = answer.late
		}
		if answer.chains != nil {
			all = append(all, answer.chains)
		}
	}
	return all
}

// errSilent stands for the answer of a peer that is not asked now.
var errSilent = errors.New("it did not answer before")

// answered says whether an error is a peer's last word: it knows no such service.
func answered(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Code == api.NotFound
}

// isSelf says whether a peer is this edge: one list of peers may be given to all edges. It would
// not answer while it starts.
func isSelf(own, peer netip.AddrPort) bool {
	if own == peer || own.Port() != peer.Port() || !own.Addr().IsUnspecified() {
		return own == peer
	}
	addresses, _ := net.InterfaceAddrs() // an error costs the time that peers have to answer
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		prefix, ok := a.(*net.IPNet)
		return ok && prefix.IP.Equal(peer.Addr().AsSlice())
	})
}

// peerAnswer is what a peer has answered.
type peerAnswer struct {
	chains []pool.Chain
	err    error
	late   bool
}

// peerClient follows no redirection, and asks no proxy: a peer is asked where the node file says.
var peerClient = &http.Client{
	Timeout:       peersTimeout,
	Transport:     &http.Transport{MaxResponseHeaderBytes: maxPeerHeader},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// askPeer asks a peer for chains of a service: for its challenge first.
func askPeer(
	ctx context.Context, secret flow.Secret, at netip.AddrPort, endpoint string, buckets int,
) ([]pool.Chain, error) {
	response, err := getChains(ctx, at, signing.Request{Subject: endpoint}, nil)
	if err != nil {
		return nil, err
	}
	challenge := response.Header.Get(peer.ChallengeHeader)
	if response.StatusCode != http.StatusUnauthorized || challenge == "" {
		return nil, peerRefusal(response)
	}
	response.Body.Close()
	question := signing.Request{Subject: endpoint, Challenge: challenge, Nonce: peer.NewNonce()}
	signature := question.Sign(secret)
	if response, err = getChains(ctx, at, question, &signature); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, peerRefusal(response)
	}
	defer response.Body.Close()
	record, err := authenticChains(response, secret, question, pool.MaxRecordBytes(buckets))
	if err != nil {
		return nil, err
	}
	return pool.ParseRecord(record)
}

// getChains sends a request; signed if there is a signature.
func getChains(
	ctx context.Context, at netip.AddrPort, question signing.Request, signature *signing.MAC,
) (*http.Response, error) {
	query := url.Values{"endpoint": {question.Subject}}
	address := "http://" + at.String() + ChainsPath + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	peer.SetHeaders(request, question, signature)
	response, err := peerClient.Do(request)
	if err != nil {
		return nil, httpserver.Cause(err)
	}
	return response, nil
}

// peerRefusal is what an answer says that has no chains, and closes it.
func peerRefusal(response *http.Response) error {
	defer response.Body.Close()
	version := response.Header.Get(peer.VersionHeader)
	switch {
	case version == "" && response.StatusCode == http.StatusOK:
		return errors.New(
			"it speaks version 1 of the exchange between edges, which any host could " +
				"abuse, and this edge version " + signing.Version + "; run this Sextant there too")
	case version != "" && version != signing.Version:
		return fmt.Errorf("it speaks version %.10q of the exchange between edges, and this edge "+
			"version %s; run the same Sextant on both", version, signing.Version)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return err
	}
	message := fmt.Sprintf("%s: %.200s", response.Status, text)
	if version != "" && response.StatusCode == http.StatusNotFound {
		return &api.Error{Code: api.NotFound, Message: message}
	}
	return errors.New(message)
}

// authenticChains reads an answer that is signed for the question. Before that is sure, nothing
// of it is read.
func authenticChains(
	response *http.Response, secret flow.Secret, question signing.Request, maxBytes int,
) ([]byte, error) {
	digest, err := signing.ParseDigest(response.Header.Get(peer.DigestHeader))
	if err != nil {
		return nil, fmt.Errorf("its answer has no digest: %w", err)
	}
	signature, err := signing.ParseMAC(response.Header.Get(peer.SignatureHeader))
	if err != nil || !signature.Equal(question.SignAnswer(secret, digest)) {
		return nil, errors.New("its answer is not signed with this cluster's secret for this " +
			"question; give all edges the same secret and flowHash")
	}
	record, err := io.ReadAll(io.LimitReader(response.Body, int64(maxBytes)+1))
	switch {
	case err != nil:
		return nil, err
	case len(record) > maxBytes:
		return nil, fmt.Errorf("its chains have more than %d bytes; give all edges the same "+
			"buckets",
			maxBytes)
	case signing.DigestOf(record) != digest:
		return nil, errors.New("its chains were changed on the way")
	}
	return record, nil
}
