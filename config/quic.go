package config

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"sextant/packet/quiclb"
)

// QUICConfigs are the configurations of a service; none: UDP is not looked into.
type QUICConfigs struct {
	Configs []QUIC `key:"configs" item:"+  rotation %s"`
}

// QUIC is how the servers of a service put their server ID into connection IDs: one configuration
// of draft-ietf-quic-load-balancers. The server ID is the 16-bit identifier of the backend's SID.
type QUIC struct {
	// 0 to 6
	Rotation int `key:"rotation"`
	// bytes
	ServerIDLength int `key:"serverIDLength" range:"2 15"`
	// bytes
	NonceLength int `key:"nonceLength"`
	// absolute path of a file with the key; "": server IDs are in clear
	KeyFile string `key:"keyFile" omit:"zero"`
	// what KeyFile holds; nil as long as it has not been read
	Key quiclb.Key `secret:"key"`
}

// Equal compares without telling by its time where keys differ.
func (q QUIC) Equal(o QUIC) bool {
	return subtle.ConstantTimeCompare(q.Key, o.Key) == 1 && q.Rotation == o.Rotation &&
		q.ServerIDLength == o.ServerIDLength &&
		q.NonceLength == o.NonceLength && q.KeyFile == o.KeyFile
}

// ParseQUICKey reads what a keyFile holds: 32 hexadecimal digits. The error never repeats the text.
func ParseQUICKey(text string) (key quiclb.Key, err error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != quiclb.KeyLength {
		return nil, fmt.Errorf("the key is not %d hexadecimal digits; make it with: openssl rand "+
			"-hex %d",
			2*quiclb.KeyLength, quiclb.KeyLength)
	}
	return b, nil
}

// Config is the configuration of the codec. It is a wrong one as long as the key has not been read.
func (q QUIC) Config() quiclb.Config {
	c := quiclb.Config{Rotation: q.Rotation, ServerIDLength: q.ServerIDLength,
		NonceLength: q.NonceLength}
	if q.KeyFile != "" {
		c.Key = append(quiclb.Key{}, q.Key...)
	}
	return c
}

func (c *checker) quic(where string, s Service) {
	if len(s.QUIC.Configs) == 0 {
		return
	}
	if s.Protocol != UDP {
		c.conflict(join(where, "quic"), fmt.Sprintf("service %q of protocol %s can't be QUIC",
			s.Name, s.Protocol),
			"write protocol: udp, or delete quic", join(where, "protocol"))
	}
	rotations := unique[int]{}
	for i, q := range s.QUIC.Configs {
		at := fmt.Sprintf("%s.quic.configs[%d]", where, i)
		if q.KeyFile != "" {
			c.directory(join(at, "keyFile"), q.KeyFile)
		}
		rotations.once(c, join(at, "rotation"), q.Rotation, "give each configuration its own",
			"rotation %d is given twice in service %q", s.Name)
		lengths := quiclb.Config{Rotation: q.Rotation, ServerIDLength: q.ServerIDLength,
			NonceLength: q.NonceLength}
		if err := lengths.Check(); err != nil {
			c.invalid(at, err.Error(), "see section 3 of draft-ietf-quic-load-balancers")
		}
	}
}

func (c *checker) hostQUIC(where string, s HostService) {
	if s.QUIC && s.Protocol != UDP {
		c.conflict(join(where, "quic"), fmt.Sprintf("service %q of protocol %s can't be QUIC",
			s.Name, s.Protocol),
			"write protocol: udp, or delete quic", join(where, "protocol"))
	}
}
