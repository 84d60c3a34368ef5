package quiclb

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// Unroutable is the rotation of connection IDs that name no server (section 3.1).
	Unroutable = 7
	// KeyLength is that of a key, in bytes.
	KeyLength = 16
	// MaxServerID is the longest server ID, in bytes.
	MaxServerID = 15

	maxRotation  = Unroutable - 1
	minNonce     = 4
	maxPlaintext = 19 // a connection ID of version 1 has 20 bytes
)

// ErrUnroutable says that a connection ID is not of the configuration, so that it names no server.
var ErrUnroutable = errors.New("connection ID is not of this configuration")

// Config is what servers and load balancers agree on. Which of several is meant, the first three
// bits of a connection ID say.
type Config struct {
	Rotation       int // 0 to 6
	ServerIDLength int // bytes, 1 to 15
	NonceLength    int // bytes, at least 4; with the server ID at most 19
	Key            Key // nil: server IDs are in clear
}

// Check says what is wrong with the configuration.
func (c Config) Check() error {
	switch {
	case c.Rotation < 0 || c.Rotation > maxRotation:
		return fmt.Errorf("config rotation is %d, not 0 to %d", c.Rotation, maxRotation)
	case c.ServerIDLength < 1 || c.ServerIDLength > MaxServerID:
		return fmt.Errorf("server ID has %d bytes, not 1 to %d", c.ServerIDLength, MaxServerID)
	case c.NonceLength < minNonce:
		return fmt.Errorf("nonce has %d bytes, not at least %d", c.NonceLength, minNonce)
	case c.PlaintextLength() > maxPlaintext:
		return fmt.Errorf("server ID and nonce have %d bytes, not at most %d", c.PlaintextLength(),
			maxPlaintext)
	case c.Key != nil && len(c.Key) != KeyLength:
		return fmt.Errorf("key has %d bytes, not %d", len(c.Key), KeyLength)
	}
	return nil
}

// PlaintextLength is that of server ID and nonce, in bytes: a connection ID has one more.
func (c Config) PlaintextLength() int { return c.ServerIDLength + c.NonceLength }

// Codec reads and writes the connection IDs of one configuration. It may be used concurrently.
type Codec struct {
	config Config       // without the key: what is not exported, fmt prints as it is
	block  cipher.Block // nil: in clear
}

// New makes the codec of a configuration.
func New(c Config) (*Codec, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("QUIC-LB configuration: %w", err)
	}
	codec := &Codec{config: c}
	if c.Key == nil {
		return codec, nil
	}
	block, err := aes.NewCipher(c.Key)
	if err != nil {
		return nil, fmt.Errorf("QUIC-LB configuration: %w", err)
	}
	codec.block, codec.config.Key = block, nil
	return codec, nil
}

// Encode returns the connection ID of a server. A nonce must not come twice under one key. The
// first byte tells the length.
func (c *Codec) Encode(serverID, nonce []byte) ([]byte, error) {
	if len(serverID) != c.config.ServerIDLength || len(nonce) != c.config.NonceLength {
		return nil, fmt.Errorf("server ID and nonce have %d and %d bytes, not %d and %d as "+
			"configured",
			len(serverID), len(nonce), c.config.ServerIDLength, c.config.NonceLength)
	}
	length := c.config.PlaintextLength()
	cid := append(make([]byte, 0, 1+length), byte(c.config.Rotation<<5|length))
	cid = append(append(cid, serverID...), nonce...)
	switch text := cid[1:]; {
	case c.block == nil:
	case length == aes.BlockSize:
		c.block.Encrypt(text, text)
	default:
		c.encryptFourPass(text)
	}
	return cid, nil
}

// Decode returns the server ID in a connection ID, or ErrUnroutable. What follows the connection ID
// is ignored, since a packet with a short header does not tell where it ends. The length in the
// first byte is not looked at: servers may put chance there.
func (c *Codec) Decode(cid []byte) ([]byte, error) {
	length := c.config.PlaintextLength()
	if len(cid) < 1+length || int(cid[0]>>5) != c.config.Rotation {
		return nil, ErrUnroutable
	}
	text := append([]byte(nil), cid[1:1+length]...)
	switch {
	case c.block == nil:
	case length == aes.BlockSize:
		c.block.Decrypt(text, text)
	default:
		c.decryptFourPass(text)
	}
	return text[:c.config.ServerIDLength], nil
}

// Length is that of the connection IDs, in bytes.
func (c *Codec) Length() int { return 1 + c.config.PlaintextLength() }

// ServerID returns the server ID of a backend, which is the 16-bit identifier of its SID behind as
// many zeros as there is room for. The configuration must have room for two bytes.
func (c Config) ServerID(id uint16) []byte {
	serverID := make([]byte, c.ServerIDLength)
	binary.BigEndian.PutUint16(serverID[len(serverID)-2:], id)
	return serverID
}

// Backend is the inverse of Config.ServerID: the identifier of a SID; false for a server ID that is
// none.
func Backend(serverID []byte) (id uint16, ok bool) {
	zeros := len(serverID) - 2
	if zeros < 0 {
		return 0, false
	}
	for _, b := range serverID[:zeros] {
		if b != 0 {
			return 0, false
		}
	}
	return binary.BigEndian.Uint16(serverID[zeros:]), true
}
