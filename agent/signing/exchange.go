package signing

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"sextant/packet/flow"
)

// Version is that of the exchange between edges. Version 1, without authentication of the one
// who asks, is refused.
const Version = "2"

// Challenge is what a node wants to see signed by who asks it: its own nonce, how long
// it takes it, and its signature over both, so that it need not remember what it gave out.
type Challenge struct {
	Nonce   Nonce
	Expires time.Time // in whole seconds
	mac     MAC
}

const challengeBytes = len(Nonce{}) + 8 + len(MAC{})

// NewChallenge makes a challenge under a secret that only the edge itself knows.
func NewChallenge(own flow.Secret, nonce Nonce, expires time.Time) Challenge {
	c := Challenge{Nonce: nonce, Expires: expires.Truncate(time.Second)}
	c.mac = c.sign(own)
	return c
}

func (c Challenge) sign(own flow.Secret) MAC {
	return Sign(own, Challenges, c.Nonce[:], seconds(c.Expires))
}

func seconds(t time.Time) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t.Unix())) }

// String writes nonce, time and code as hexadecimal digits.
func (c Challenge) String() string {
	b := append(c.Nonce[:len(c.Nonce):len(c.Nonce)], seconds(c.Expires)...)
	return hex.EncodeToString(append(b, c.mac[:]...))
}

// ParseChallenge reads what String wrote. Whose it is says Check.
func ParseChallenge(text string) (Challenge, error) {
	var b [challengeBytes]byte
	if err := parseHex(b[:], text); err != nil {
		return Challenge{}, err
	}
	c := Challenge{Nonce: Nonce(b[:16]), mac: MAC(b[24:])}
	c.Expires = time.Unix(int64(binary.BigEndian.Uint64(b[16:])), 0)
	return c, nil
}

// Check returns an error if the edge did not make the challenge, or no longer takes it.
func (c Challenge) Check(own flow.Secret, now time.Time) error {
	if !c.mac.Equal(c.sign(own)) {
		return errors.New("the challenge is not of this edge, or from before its restart")
	}
	if !now.Before(c.Expires) {
		return errors.New("the challenge is too old")
	}
	return nil
}

// Exchange is what nodes ask of one another.
type Exchange uint8

// The exchanges.
const (
	Chains Exchange = iota // an edge asks another for the chains of a service
	Counts                 // a node asks another what it counts: connections, copies of packets
)

// purposes are those of a request and of its answer.
func (e Exchange) purposes() (request, answer Purpose) {
	if e == Counts {
		return CountRequests, CountAnswers
	}
	return ChainRequests, ChainAnswers
}

// Request is what a node asks another. It answers the other's challenge, and has a nonce of its
// own, which the other has to sign.
type Request struct {
	Of        Exchange
	Subject   string // Chains: the service's endpoint; Counts: the address asked, and the path
	Challenge string // as the other node wrote it
	Nonce     Nonce
}

func (r Request) fields() [][]byte {
	return [][]byte{[]byte(r.Subject), []byte(r.Challenge), r.Nonce[:]}
}

// Sign signs the request.
func (r Request) Sign(secret flow.Secret) MAC {
	purpose, _ := r.Of.purposes()
	return Sign(secret, purpose, r.fields()...)
}

// SignAnswer signs what is told as the answer to this request, and to no other.
func (r Request) SignAnswer(secret flow.Secret, told Digest) MAC {
	_, purpose := r.Of.purposes()
	return Sign(secret, purpose, append(r.fields(), told[:])...)
}
