package quiclb

import "fmt"

// Key is a key of AES-128. It prints as a placeholder whatever the verb or the encoder, like
// flow.Secret.
type Key []byte

const hidden = "(secret)"

// String returns a placeholder, not the key.
func (k Key) String() string { return hidden }

// Format writes the placeholder for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText returns the placeholder, so that JSON, YAML and slog do not print the octets either.
func (k Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }
