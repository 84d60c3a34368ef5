package edge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"sextant/agent/metrics"
	"sextant/agent/signing"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// challengeLife is how long a peer may take to answer a challenge.
const challengeLife = 10 * time.Second

// challenges are the nonces by which an edge knows that a request is new. What it gives out costs
// it no memory; it remembers those that authentic requests used, until they are too old.
type challenges struct {
	secret flow.Secret // of this process

	mu   sync.Mutex
	used map[signing.Nonce]time.Time // to when they would be taken
}

func newChallenges() *challenges {
	c := &challenges{used: map[signing.Nonce]time.Time{}}
	_, _ = rand.Read(c.secret[:]) // never fails
	return c
}

func newNonce() (n signing.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

func (c *challenges) fresh(now time.Time) signing.Challenge {
	return signing.NewChallenge(c.secret, newNonce(), now.Add(challengeLife))
}

// use takes a challenge once.
func (c *challenges) use(challenge signing.Challenge, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for nonce, expires := range c.used {
		if !now.Before(expires) {
			delete(c.used, nonce)
		}
	}
	if _, used := c.used[challenge.Nonce]; used {
		return errors.New("the challenge was answered before")
	}
	c.used[challenge.Nonce] = challenge.Expires
	return nil
}

// admit says whether a request comes from an edge of the cluster, and returns what it asks.
func (c *challenges) admit(r *http.Request, secret flow.Secret) (signing.Request, error) {
	question := signing.Request{
		Endpoint: r.URL.Query().Get("endpoint"), Challenge: r.Header.Get(challengeHeader),
	}
	if question.Challenge == "" {
		return question, errors.New("sign the challenge")
	}
	challenge, err := signing.ParseChallenge(question.Challenge)
	if err != nil {
		return question, fmt.Errorf("the challenge can't be read: %w", err)
	}
	if err := challenge.Check(c.secret, time.Now()); err != nil {
		return question, err
	}
	if question.Nonce, err = signing.ParseNonce(r.Header.Get(nonceHeader)); err != nil {
		return question, fmt.Errorf("the nonce can't be read: %w", err)
	}
	signature, err := signing.ParseMAC(r.Header.Get(signatureHeader))
	if err != nil || !signature.Equal(question.Sign(secret)) {
		return question, errors.New("the request is not signed with this cluster's secret; " +
			"give all edges the same secret")
	}
	return question, c.use(challenge, time.Now())
}

// chainsHandler answers peers. All that ask for the same chains share one compressed copy; what is
// signed for each of them is its digest.
func (x *exchange) chainsHandler() http.Handler {
	var shared metrics.SharedCopies[*pool.Generation]
	challenges := newChallenges()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, signing.Version)
		if version := r.Header.Get(versionHeader); version != signing.Version {
			http.Error(w, fmt.Sprintf("this edge tells chains by version %s of the exchange "+
				"between "+
				"edges, and this request has version %.10q; run the same Sextant on both",
				signing.Version, version), http.StatusUpgradeRequired)
			return
		}
		secret, err := x.edgeSecret(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		question, err := challenges.admit(r, secret)
		if err != nil {
			w.Header().Set(challengeHeader, challenges.fresh(time.Now()).String())
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		x.tellChains(w, r, &shared, question, secret)
	})
}

// edgeSecret is the cluster's secret.
func (x *exchange) edgeSecret(r *http.Request) (secret flow.Secret, err error) {
	return secret, x.Do(r.Context(), func() { secret = x.Node.Secret })
}

// tellChains answers a question of an edge of the cluster.
func (x *exchange) tellChains(
	w http.ResponseWriter, r *http.Request, shared *metrics.SharedCopies[*pool.Generation],
	question signing.Request, secret flow.Secret,
) {
	var generation *pool.Generation
	if err := x.Do(r.Context(),
		func() { generation = x.generation(question.Endpoint) }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if generation == nil {
		message := fmt.Sprintf("no service %q on this edge", question.Endpoint)
		http.Error(w, message, http.StatusNotFound)
		return
	}
	answer, release, err := shared.Take(generation, func(h http.Header, out io.Writer) error {
		record := generation.Record()
		h.Set("Content-Type", "application/octet-stream")
		h.Set(digestHeader, signing.DigestOf(record).String())
		_, err := out.Write(record)
		return err
	})
	if err != nil {
		metrics.Unanswered(w, err)
		return
	}
	defer release()
	digest, err := signing.ParseDigest(answer.Header.Get(digestHeader))
	if err != nil {
		metrics.Unanswered(w, err)
		return
	}
	w.Header().Set(signatureHeader, question.SignAnswer(secret, digest).String())
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
