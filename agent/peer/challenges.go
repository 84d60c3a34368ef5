package peer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sextant/agent/signing"
	"sextant/packet/flow"
)

// Headers of the exchange.
const (
	VersionHeader   = "Sextant-Version"   // of the exchange, in all requests and answers
	ChallengeHeader = "Sextant-Challenge" // made by the one who answers
	NonceHeader     = "Sextant-Nonce"     // made by the one who asks
	DigestHeader    = "Sextant-Digest"    // of what is told
	SignatureHeader = "Sextant-Signature"
)

// challengeLife is how long a peer may take to answer a challenge.
const challengeLife = 10 * time.Second

// Challenges are the nonces by which a node knows that a request is new. What it gives out costs
// it no memory; it remembers those that authentic requests used, until they are too old.
type Challenges struct {
	secret flow.Secret // of this process

	mu   sync.Mutex
	used map[signing.Nonce]time.Time // to when they would be taken
}

// NewChallenges makes challenges under a secret of their own.
func NewChallenges() *Challenges {
	c := &Challenges{used: map[signing.Nonce]time.Time{}}
	_, _ = rand.Read(c.secret[:]) // never fails
	return c
}

// NewNonce returns 128 random bits.
func NewNonce() (n signing.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// use takes a challenge once.
func (c *Challenges) use(challenge signing.Challenge, now time.Time) error {
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

// Admit says whether a request for a subject comes from a node of the cluster, and returns it. Who
// is not admitted has its answer: the reason, and a challenge to sign.
func (c *Challenges) Admit(w http.ResponseWriter, r *http.Request, of signing.Exchange,
	subject string, secret flow.Secret) (signing.Request, bool) {
	w.Header().Set(VersionHeader, signing.Version)
	if version := r.Header.Get(VersionHeader); version != signing.Version {
		http.Error(w, fmt.Sprintf("this node answers others by version %s of the exchange between "+
			"nodes, and this request has version %.10q; run the same Sextant on both",
			signing.Version, version), http.StatusUpgradeRequired)
		return signing.Request{}, false
	}
	question, err := c.admit(r, of, subject, secret)
	if err != nil {
		fresh := signing.NewChallenge(c.secret, NewNonce(), time.Now().Add(challengeLife))
		w.Header().Set(ChallengeHeader, fresh.String())
		http.Error(w, err.Error(), http.StatusUnauthorized)
	}
	return question, err == nil
}

func (c *Challenges) admit(r *http.Request, of signing.Exchange, subject string,
	secret flow.Secret) (signing.Request, error) {
	question := signing.Request{
		Of: of, Subject: subject, Challenge: r.Header.Get(ChallengeHeader),
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
	if question.Nonce, err = signing.ParseNonce(r.Header.Get(NonceHeader)); err != nil {
		return question, fmt.Errorf("the nonce can't be read: %w", err)
	}
	signature, err := signing.ParseMAC(r.Header.Get(SignatureHeader))
	if err != nil || !signature.Equal(question.Sign(secret)) {
		return question, errors.New("the request is not signed with this cluster's secret; " +
			"give all nodes the same secret")
	}
	return question, c.use(challenge, time.Now())
}
