package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"

	"sextant/packet/flow"
)

// Marshal writes the canonical text of a node file: every value is there,
// defaults too, and Parse reads it back as the same node. The secret is in
// it in plain text; Redact takes it out.
func Marshal(n *Node) ([]byte, error) { return new(Writer).Marshal(n) }

// marshalWhole is Marshal in one piece.
func marshalWhole(n *Node) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(nodeDocument(n), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write node %q as YAML: %w", n.Name, err)
	}
	return text, nil
}

// MarshalAsJSON writes the same document as JSON, which Parse reads as well, the secret too.
func MarshalAsJSON(n *Node) ([]byte, error) {
	text, err := json.Marshal(nodeDocument(n))
	if err != nil {
		return nil, fmt.Errorf("write node %q as JSON: %w", n.Name, err)
	}
	return text, nil
}

// MarshalJSON writes the document without the secret: a node that is a part of a log line or of an
// answer does not show it.
func (n *Node) MarshalJSON() ([]byte, error) { return json.Marshal(nodeDocument(Redact(n))) }

func nodeDocument(n *Node) any {
	return objectOf(reflect.TypeFor[Node](), "", "").documentOf(reflect.ValueOf(*n))
}

// Redact returns a copy without the secret.
func Redact(n *Node) *Node {
	c := n.Clone()
	c.Secret = flow.Secret{}
	return c
}

// Fingerprint names the content of a node file: equal nodes have equal
// fingerprints, of 16 hexadecimal digits.
func Fingerprint(n *Node) (string, error) {
	text, err := Marshal(n)
	if err != nil {
		return "", err
	}
	return FingerprintOf(n, text), nil
}

// FingerprintOf is Fingerprint with the text that Marshal has made of the node.
func FingerprintOf(n *Node, text []byte) string {
	var more []byte // a large text is not copied
	if n.SecretFile != "" {
		more = append(more, n.Secret[:]...)
	}
	if n.Edge != nil {
		for _, s := range n.Edge.Services {
			for _, q := range s.QUIC.Configs {
				more = append(more, q.Key...)
			}
		}
	}
	for _, k := range n.HMACKeys() {
		more = append(more, k.Secret.Octets()...)
	}
	if n.CFLB != nil {
		more = append(more, n.CFLB.Key...)
	}
	if n.PathSource != nil {
		more = append(more, n.PathSource.Key...)
	}
	if n.Subflows != nil {
		more = append(more, n.Subflows.Key...)
	}
	sum := sha256.New()
	sum.Write(text)
	sum.Write(more)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
