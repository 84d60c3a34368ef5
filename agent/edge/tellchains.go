package edge

import (
	"fmt"
	"io"
	"net/http"

	"sextant/agent/metrics"
	"sextant/agent/peer"
	"sextant/agent/signing"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// chainsHandler answers peers. All that ask for the same chains share one compressed copy; what is
// signed for each of them is its digest.
func (x *exchange) chainsHandler() http.Handler {
	var shared metrics.SharedCopies[*pool.Generation]
	challenges := peer.NewChallenges()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, err := x.edgeSecret(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		endpoint := r.URL.Query().Get("endpoint")
		question, admitted := challenges.Admit(w, r, signing.Chains, endpoint, secret)
		if !admitted {
			return
		}
		x.tellChains(w, r, &shared, question, secret)
	})
}

// signingSecret is that of what edges tell each other of buckets.
func signingSecret(n *config.Node) flow.Secret { return n.FlowHash.Signing(n.Secret) }

// edgeSecret is the same of the node that runs.
func (x *exchange) edgeSecret(r *http.Request) (secret flow.Secret, err error) {
	return secret, x.Do(r.Context(), func() { secret = signingSecret(x.Node) })
}

// tellChains answers a question of an edge of the cluster.
func (x *exchange) tellChains(
	w http.ResponseWriter, r *http.Request, shared *metrics.SharedCopies[*pool.Generation],
	question signing.Request, secret flow.Secret,
) {
	var generation *pool.Generation
	var own func(id uint16) bool
	if err := x.Do(r.Context(), func() {
		generation, own = x.generation(question.Subject), x.Store.Kept.SIDs.Own()
	}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if generation == nil {
		message := fmt.Sprintf("no service %q on this edge", question.Subject)
		http.Error(w, message, http.StatusNotFound)
		return
	}
	answer, release, err := shared.Take(generation, func(h http.Header, out io.Writer) error {
		record := generation.RecordWithout(own)
		h.Set("Content-Type", "application/octet-stream")
		h.Set(peer.DigestHeader, signing.DigestOf(record).String())
		_, err := out.Write(record)
		return err
	})
	if err != nil {
		metrics.Unanswered(w, err)
		return
	}
	defer release()
	digest, err := signing.ParseDigest(answer.Header.Get(peer.DigestHeader))
	if err != nil {
		metrics.Unanswered(w, err)
		return
	}
	w.Header().Set(peer.SignatureHeader, question.SignAnswer(secret, digest).String())
	answer.Send(w, r)
}

// generation is that of the edge's service at an endpoint; nil if it has none.
func (x *exchange) generation(endpoint string) *pool.Generation {
	for _, s := range x.services() {
		if s.Endpoint.String() == endpoint {
			return s.Generation
		}
	}
	return nil
}
