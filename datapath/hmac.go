package datapath

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
	"sextant/packet/srv6"
)

// HMACRule says which packets to a host's SIDs have to have an HMAC TLV (enum hmac_rule).
type HMACRule = model.HMACRule

// The rules. All but the first need keys.
const (
	HMACNone, HMACPresent, HMACSRH, HMACAll = model.HMACNone, model.HMACPresent, model.HMACSRH,
		model.HMACAll
)

const (
	hmacSigns = 0 // HMAC_SIGNS
	innerPad  = 0x36
	outerPad  = 0x5c
)

func hmacKeyOf(k srv6.HMACKey) (hmacKey, error) {
	inner, errInner := padded(k.Secret.Octets(), innerPad)
	outer, errOuter := padded(k.Secret.Octets(), outerPad)
	sum := sha256.New()
	sum.Write(binary.BigEndian.AppendUint32([]byte{byte(k.Form)}, k.ID))
	sum.Write(k.Secret.Octets())
	return hmacKey{
		ID: k.ID, Form: uint32(k.Form), Generation: binary.BigEndian.Uint64(sum.Sum(nil)),
		Inner: inner, Outer: outer,
	}, errors.Join(errInner, errOuter)
}

// padded returns the state of SHA-256 behind one block: a secret of at most 64 octets with zeros
// behind it, XOR pad (RFC 2104 section 2).
func padded(secret []byte, pad byte) (state [8]uint32, err error) {
	block := make([]byte, sha256.BlockSize)
	copy(block, secret)
	for i := range block {
		block[i] ^= pad
	}
	hash := sha256.New()
	hash.Write(block)
	text, err := hash.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return state, err
	}
	words, ok := bytes.CutPrefix(text, []byte("sha\x03"))
	if !ok || len(words) < 4*len(state) {
		return state, errors.New("compute an HMAC key: the state of SHA-256 has another form in " +
			"this version of Go; use the one in go.mod")
	}
	for i := range state {
		state[i] = binary.BigEndian.Uint32(words[4*i:])
	}
	return state, nil
}

// setHMACRule puts the rule into an object, which remembers HMACs only if it has to do with them.
func setHMACRule(spec *ebpf.CollectionSpec, rule HMACRule) error {
	if rule == HMACNone {
		spec.Maps["hmac_known"].MaxEntries = 1
	}
	return spec.Variables["hmac_rule"].Set(uint32(rule))
}

// SetSigningKey makes the edge sign with a key, from the next packet on. Edges of a configuration
// with Signs need it before Commit.
func (e *Edge) SetSigningKey(k srv6.HMACKey) error {
	key, err := hmacKeyOf(k)
	if err == nil {
		err = e.putEntry("hmac_keys", uint32(hmacSigns), key)
	}
	if err != nil {
		return fmt.Errorf("set HMAC key %d: %w", k.ID, err)
	}
	return nil
}

// SetHMACKeys makes the host accept keys, and no others. New ones are there before old ones go.
func (h *Host) SetHMACKeys(keys []srv6.HMACKey) error {
	after := map[uint32]hmacKey{}
	for _, k := range keys {
		key, err := hmacKeyOf(k)
		if err != nil {
			return err
		}
		after[k.ID] = key
	}
	if err := putAll(h.collection, "hmac_keys", h.hmacKeys, after); err != nil {
		return fmt.Errorf("set HMAC keys: %w", err)
	}
	h.hmacKeys = after
	return nil
}
