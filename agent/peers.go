package agent

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/flow"
	"sextant/pool"
	"sextant/srv6"
)

// An edge that starts without memory asks the other edges for the chains of its services, because theirs name who had a bucket before.
// They answer on the port of their metrics, signed with the cluster's secret over the asker's nonce: nobody else can tell an
// edge where old connections are.

const (
	chainsPath      = "/v1/chains"
	signatureHeader = "Sextant-Signature"
	peersTimeout    = 2 * time.Second // for all of them together; an edge must not wait longer to forward
	maxRecord       = 64 << 20
)

// signature is HMAC-SHA-256 over what was asked and what is answered.
func signature(secret flow.Secret, endpoint, nonce string, record []byte) string {
	mac := signer(secret, endpoint, nonce)
	mac.Write(record)
	return hex.EncodeToString(mac.Sum(nil))
}

// signer makes the same of an answer that is written to it.
func signer(secret flow.Secret, endpoint, nonce string) hash.Hash {
	mac := hmac.New(sha256.New, secret[:])
	fmt.Fprintf(mac, "%s\n%s\n", endpoint, nonce)
	return mac
}

// chainsHandler answers peers. All that ask for the same chains share one compressed copy.
func (a *Agent) chainsHandler() http.Handler {
	var shared sharedCopies[*pool.Generation]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint, nonce := r.FormValue("endpoint"), r.FormValue("nonce")
		var generation *pool.Generation
		var secret flow.Secret
		err := a.do(r.Context(), func() {
			if a.edge == nil {
				return
			}
			secret = a.node.Secret
			for i := range a.edge.services {
				if a.edge.services[i].Endpoint.String() == endpoint {
					generation = a.edge.services[i].generation
				}
			}
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if generation == nil {
			http.Error(w, fmt.Sprintf("no service %s on this edge", endpoint), http.StatusNotFound)
			return
		}
		record, release, err := shared.take(generation, func(h http.Header, out io.Writer) error {
			h.Set("Content-Type", "application/octet-stream")
			_, err := out.Write(generation.Record())
			return err
		})
		if err != nil {
			unanswered(w, err)
			return
		}
		defer release()
		mac := signer(secret, endpoint, nonce)
		if _, err := io.Copy(mac, record.reader()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set(signatureHeader, hex.EncodeToString(mac.Sum(nil)))
		record.send(w, r)
	})
}

// askPeers returns the chains of a service as the peers have them, in the order of the configuration; those that do not answer in time,
// or wrongly, are left out with a warning. Who took all the time is not asked about further services: an edge that is off would
// cost each of them as much.
func (a *Agent) askPeers(n *config.Node, e config.Endpoint) [][]pool.Chain {
	ctx, cancel := context.WithTimeout(context.Background(), peersTimeout)
	defer cancel()
	answers := make([]chan told, len(n.Edge.Peers))
	for i, peer := range n.Edge.Peers {
		answers[i] = make(chan told, 1)
		if a.silent[peer] || isSelf(n.API.Metrics, peer) {
			answers[i] <- told{}
			continue
		}
		go func() {
			chains, err := askPeer(ctx, n.Secret, peer, e.String())
			answers[i] <- told{chains, err, ctx.Err() != nil}
		}()
	}
	var all [][]pool.Chain
	for i, peer := range n.Edge.Peers {
		answer := <-answers[i]
		if answer.err != nil {
			a.options.Log.Warn("an edge does not tell its chains", "peer", peer, "service", e, "error", answer.err)
			a.silent[peer] = answer.late
		}
		if answer.chains != nil {
			all = append(all, answer.chains)
		}
	}
	return all
}

// isSelf says whether a peer is this edge: one list of peers may be given to all edges. It would not answer while it starts.
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

// told is what a peer has answered.
type told struct {
	chains []pool.Chain
	err    error
	late   bool
}

func askPeer(ctx context.Context, secret flow.Secret, peer netip.AddrPort, endpoint string) ([]pool.Chain, error) {
	nonce := rand.Text()
	query := url.Values{"endpoint": {endpoint}, "nonce": {nonce}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+peer.String()+chainsPath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: peersTimeout}).Do(request)
	if err != nil {
		return nil, cause(err)
	}
	defer response.Body.Close()
	record, err := io.ReadAll(io.LimitReader(response.Body, maxRecord))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, &api.Error{Code: api.NotFound, Message: fmt.Sprintf("%s: %.200s", response.Status, record)}
	}
	signed := response.Header.Get(signatureHeader)
	if !hmac.Equal([]byte(signed), []byte(signature(secret, endpoint, nonce, record))) {
		return nil, fmt.Errorf("its answer is not signed with this cluster's secret; give all edges the same secret")
	}
	return pool.ParseRecord(record)
}

// ignore takes out of chains whom this node can't know: ids that are not compressed SIDs are each node's own numbers, which mean
// somebody else here, or nobody.
func (a *Agent) ignore(e config.Endpoint, chains []pool.Chain, known func(id uint16) bool) {
	if dropped := pool.Retain(chains, known); dropped > 0 {
		a.ignored += uint64(dropped)
		a.options.Log.Warn("chains of the past name backends by numbers of another node; they are left out",
			"service", e, "places", dropped)
	}
}

// chainsFromBefore is who had the buckets of a service, as far as anybody knows who kept running, or else etcd, or else this
// machine's disk. Of other nodes only chains of as many buckets count; nil if there are none.
func (a *Agent) chainsFromBefore(n *config.Node, e config.Endpoint) []pool.Chain {
	known := append(a.askPeers(n, e), a.etcd.read(n.Secret, e)...)
	for _, chains := range known {
		a.ignore(e, chains, func(id uint16) bool { return srv6.CSID(id).Global() })
	}
	if own := a.journal.read(e); own != nil {
		a.ignore(e, own, func(id uint16) bool { return a.sidOf(n, id).IsValid() })
		known = append(known, pool.Rebucket(own, n.Edge.Buckets))
	}
	var chains []pool.Chain
	for _, more := range known {
		if len(more) != n.Edge.Buckets {
			continue
		}
		if chains == nil {
			chains = more
			continue
		}
		if merged, err := pool.Merge(chains, more); err == nil {
			chains = merged
		}
	}
	return chains
}
