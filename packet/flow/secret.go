package flow

import (
	"encoding/hex"
	"fmt"

	"sextant/packet/syntax"
)

// Secret is the cluster's 128-bit hash key. All edges of a cluster hold the same one, else they
// disagree on buckets and a connection that moves from edge to edge breaks. It prints as a
// placeholder whatever the verb or the encoder, so that it does not reach a log, an error or an API
// by accident.
type Secret [16]byte

// redacted is how a Secret prints.
const redacted = "(secret)"

// ParseSecret reads a secret written as 32 hexadecimal digits. The error never repeats the text.
// All zeros are refused: that is a forgotten setting, and it would let anyone aim flows at one
// server.
func ParseSecret(text string) (Secret, error) {
	var s Secret
	if len(text) != hex.EncodedLen(len(s)) {
		return Secret{}, syntax.Wrong("write 32 hexadecimal digits, for example from: "+
			"openssl rand -hex 16", "secret has %d characters", len(text))
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return Secret{}, syntax.Wrong("write 32 of 0-9 and a-f",
			"secret has a character that is not a hexadecimal digit")
	}
	if s == (Secret{}) {
		return Secret{}, syntax.Wrong("make one with: openssl rand -hex 16",
			"secret is all zeros, which anyone can guess")
	}
	return s, nil
}

// String returns a placeholder, not the secret.
func (s Secret) String() string { return redacted }

// Format writes the placeholder for every verb, also for %x and %#v, which would otherwise print
// the octets.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns the placeholder, so that JSON, YAML and slog do not print the octets either.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
