package config

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"sextant/quiclb"
)

// QUIC is how the servers of a service put their server ID into connection IDs: one configuration of
// draft-ietf-quic-load-balancers. The server ID is the 16-bit identifier of the backend's SID.
type QUIC struct {
	Rotation       int        // 0 to 6
	ServerIDLength int        // bytes
	NonceLength    int        // bytes
	KeyFile        string     // absolute path of a file with the key; "": server IDs are in clear
	Key            quiclb.Key // what KeyFile holds; nil as long as it has not been read
}

// Equal compares without telling by its time where keys differ.
func (q QUIC) Equal(o QUIC) bool {
	return subtle.ConstantTimeCompare(q.Key, o.Key) == 1 && q.Rotation == o.Rotation && q.ServerIDLength == o.ServerIDLength &&
		q.NonceLength == o.NonceLength && q.KeyFile == o.KeyFile
}

const minServerID = 2 // bytes, for the identifier of a SID

// ParseQUICKey reads what a keyFile holds: 32 hexadecimal digits. The error never repeats the text.
func ParseQUICKey(text string) (key quiclb.Key, err error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != quiclb.KeyLength {
		return nil, fmt.Errorf("the key is not %d hexadecimal digits; make it with: openssl rand -hex %d",
			2*quiclb.KeyLength, quiclb.KeyLength)
	}
	return b, nil
}

// Config is the configuration of the codec. It is a wrong one as long as the key has not been read.
func (q QUIC) Config() quiclb.Config {
	c := quiclb.Config{Rotation: q.Rotation, ServerIDLength: q.ServerIDLength, NonceLength: q.NonceLength}
	if q.KeyFile != "" {
		c.Key = append(quiclb.Key{}, q.Key...)
	}
	return c
}

func readQUIC(v value, configs *[]QUIC) {
	v.mapping(
		field{"configs", intoList(configs, readQUICConfig),
			`"configs:" and a list like "- {rotation: 0, serverIDLength: 2, nonceLength: 6}"`},
	)
}

func readQUICConfig(v value) (q QUIC) {
	v.mapping(
		field{"rotation", intoNumber(&q.Rotation), `"rotation: " and the first three bits of the connection IDs, 0 to 6`},
		field{"serverIDLength", intoNumber(&q.ServerIDLength), `"serverIDLength: " and how many bytes server IDs have`},
		field{"nonceLength", intoNumber(&q.NonceLength), `"nonceLength: " and how many bytes nonces have`},
		field{"keyFile", intoText(&q.KeyFile), ""},
	)
	return q
}

func (c *checker) quic(where string, s Service) {
	if len(s.QUIC) == 0 {
		return
	}
	if s.Protocol != UDP {
		c.conflict(join(where, "quic"), fmt.Sprintf("service %q of protocol %s can't be QUIC", s.Name, s.Protocol),
			"write protocol: udp, or delete quic", join(where, "protocol"))
	}
	rotations := unique[int]{}
	for i, q := range s.QUIC {
		at := fmt.Sprintf("%s.quic.configs[%d]", where, i)
		if q.KeyFile != "" {
			c.directory(join(at, "keyFile"), q.KeyFile)
		}
		if _, taken := rotations.add(q.Rotation, at); taken {
			c.conflict(join(at, "rotation"), fmt.Sprintf("rotation %d is given twice in service %q", q.Rotation, s.Name),
				"give each configuration its own")
		}
		c.number(join(at, "serverIDLength"), "serverIDLength", q.ServerIDLength, minServerID, quiclb.MaxServerID)
		lengths := quiclb.Config{Rotation: q.Rotation, ServerIDLength: q.ServerIDLength, NonceLength: q.NonceLength}
		if err := lengths.Check(); err != nil {
			c.invalid(at, err.Error(), "see section 3 of draft-ietf-quic-load-balancers")
		}
	}
}

type documentQUIC struct {
	Configs []documentQUICConfig `yaml:"configs" json:"configs"`
}

type documentQUICConfig struct {
	Rotation       int    `yaml:"rotation" json:"rotation"`
	ServerIDLength int    `yaml:"serverIDLength" json:"serverIDLength"`
	NonceLength    int    `yaml:"nonceLength" json:"nonceLength"`
	KeyFile        string `yaml:"keyFile,omitempty" json:"keyFile,omitempty"`
}

// quicDocument is nil without a configuration.
func quicDocument(configs []QUIC) any {
	if len(configs) == 0 {
		return nil
	}
	return documentQUIC{each(configs, func(q QUIC) documentQUICConfig {
		return documentQUICConfig{q.Rotation, q.ServerIDLength, q.NonceLength, q.KeyFile}
	})}
}

// quicText writes the configurations as a person would.
func quicText(configs []QUIC) string {
	if len(configs) == 0 {
		return "none"
	}
	return strings.Join(each(configs, func(q QUIC) string {
		key := "in clear"
		if q.KeyFile != "" {
			key = "key in " + q.KeyFile
		}
		return fmt.Sprintf("rotation %d: server ID %d, nonce %d, %s", q.Rotation, q.ServerIDLength, q.NonceLength, key)
	}), "; ")
}

func (c *checker) hostQUIC(where string, s HostService) {
	if s.QUIC && s.Protocol != UDP {
		c.conflict(join(where, "quic"), fmt.Sprintf("service %q of protocol %s can't be QUIC", s.Name, s.Protocol),
			"write protocol: udp, or delete quic", join(where, "protocol"))
	}
}

// quic compares how connection IDs are read; a key that was changed within its file is named, never shown.
func (d *differ) quic(title string, a, b []QUIC) {
	d.modify(title, "quic", quicText(a), quicText(b))
	for _, q := range b {
		i := slices.IndexFunc(a, func(other QUIC) bool { return other.Rotation == q.Rotation && other.KeyFile == q.KeyFile })
		if i >= 0 && subtle.ConstantTimeCompare(a[i].Key, q.Key) == 0 {
			d.modify(title, fmt.Sprintf("key of quic rotation %d", q.Rotation), "(not shown)", "(another, not shown)")
		}
	}
}
