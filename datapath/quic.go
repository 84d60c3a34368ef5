package datapath

import (
	"crypto/aes"
	"errors"
	"fmt"

	"sextant/packet/quiclb"
)

const quicRotations = 8 // QUIC_ROTATIONS

// How the text of a connection ID is encrypted, enum quic_cipher.
const (
	quicClear      = 0
	quicSinglePass = 1
	quicFourPass   = 2
)

// ones returns a mask of so many bytes.
func ones(n int) (mask [16]byte) {
	for i := range n {
		mask[i] = 0xff
	}
	return mask
}

func quicConfigOf(c quiclb.Config) quicConfig {
	length := c.PlaintextLength()
	half := (length + 1) / 2
	out := quicConfig{
		Left: ones(half), Right: ones(half), ID: ones(c.ServerIDLength),
		Length: uint8(length), RightAt: uint8(length - half),
	}
	if length%2 == 1 { // the halves share the byte in the middle
		out.Left[half-1], out.Right[0] = 0xf0, 0x0f
	}
	if 2*c.ServerIDLength <= length {
		out.IDInLeft = 1
	}
	switch {
	case c.Key == nil:
		out.Cipher = quicClear
	case length == aes.BlockSize:
		out.Cipher, out.Key = quicSinglePass, decryptionKey(c.Key)
	default:
		out.Cipher, out.Key = quicFourPass, encryptionKey(c.Key)
	}
	return out
}

// SetQUIC makes the service of index one of QUIC, whose connection IDs of the configurations name
// the given backends. Without a configuration it is not QUIC any more. SetService comes behind it.
func (e *Edge) SetQUIC(index uint32, configs []quiclb.Config, backends []uint16) error {
	servers, known := map[quicServer]uint32{}, map[uint32]quicConfig{}
	for _, c := range configs {
		if err := c.Check(); err != nil {
			return fmt.Errorf("set QUIC of service %d: %w", index, err)
		}
		key := index*quicRotations + uint32(c.Rotation)
		known[key] = quicConfigOf(c)
		for _, id := range backends {
			server := quicServer{Config: key}
			copy(server.ID[:], c.ServerID(id))
			servers[server] = uint32(id)
		}
	}
	before := e.quic[index]
	e.quic[index] = quicTables{known, servers}
	err := errors.Join(
		putAll(e.collection, "quic_servers", before.servers, servers),
		putAll(e.collection, "quic_configs", before.configs, known),
	)
	if err != nil {
		return fmt.Errorf("set QUIC of service %d: %w", index, err)
	}
	return nil
}

// quicTables is what the program knows about a service.
type quicTables struct {
	configs map[uint32]quicConfig
	servers map[quicServer]uint32
}

// SetQUIC says whether a service of UDP is QUIC: then first packets are offered as SYNs are.
// SetService comes behind it.
func (h *Host) SetQUIC(key ServiceKey, quic bool) { h.quic[key] = quic }
