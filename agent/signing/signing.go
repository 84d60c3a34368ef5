package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"sextant/packet/flow"
)

// Purpose is what a signature is for. The key of a purpose is HMAC-SHA-256 of
// "sextant/PURPOSE/v1" under the cluster's secret.
type Purpose string

// The purposes.
const (
	Challenges    Purpose = "chains-challenge" // an edge to itself, under a secret of its own
	ChainRequests Purpose = "chains-request"   // the asking edge
	ChainAnswers  Purpose = "chains-answer"    // the answering edge
	CountRequests Purpose = "count-request"    // the asking node
	CountAnswers  Purpose = "count-answer"     // the answering node
	EtcdRecords   Purpose = "etcd-record"
)

// MAC is a signature: HMAC-SHA-256.
type MAC [sha256.Size]byte

// Sign signs fields. Each is preceded by its length in bytes (64 bits, big endian), so that no
// two lists of fields are the same text.
func Sign(secret flow.Secret, p Purpose, fields ...[]byte) (m MAC) {
	key := hmac.New(sha256.New, secret[:])
	key.Write([]byte("sextant/" + string(p) + "/v1"))
	mac := hmac.New(sha256.New, key.Sum(nil))
	for _, f := range fields {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f))))
		mac.Write(f)
	}
	mac.Sum(m[:0])
	return m
}

// Equal compares in constant time.
func (m MAC) Equal(other MAC) bool { return hmac.Equal(m[:], other[:]) }

// String writes 64 hexadecimal digits, as ParseMAC reads them.
func (m MAC) String() string { return hex.EncodeToString(m[:]) }

// ParseMAC reads 64 hexadecimal digits, in lower case.
func ParseMAC(text string) (m MAC, err error) { return m, parseHex(m[:], text) }

// Digest is SHA-256 of what is told.
type Digest [sha256.Size]byte

// DigestOf returns the digest of what is told.
func DigestOf(record []byte) Digest { return sha256.Sum256(record) }

// String writes 64 hexadecimal digits, as ParseDigest reads them.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads 64 hexadecimal digits, in lower case.
func ParseDigest(text string) (d Digest, err error) { return d, parseHex(d[:], text) }

// Nonce is a number that its maker never uses twice: 128 random bits.
type Nonce [16]byte

// String writes 32 hexadecimal digits, as ParseNonce reads them.
func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// ParseNonce reads 32 hexadecimal digits, in lower case.
func ParseNonce(text string) (n Nonce, err error) { return n, parseHex(n[:], text) }

// parseHex reads exactly what hex.EncodeToString writes for as many bytes.
func parseHex(into []byte, text string) error {
	if len(text) != hex.EncodedLen(len(into)) {
		return fmt.Errorf("%d characters, want %d", len(text), hex.EncodedLen(len(into)))
	}
	if _, err := hex.Decode(into, []byte(text)); err != nil {
		return err
	}
	if hex.EncodeToString(into) != text {
		return errors.New("hexadecimal digits in upper case")
	}
	return nil
}
