package config

import (
	"fmt"
	"strings"

	"sextant/packet/lists"
	"sextant/packet/srv6"
)

// HMACKey is a pre-shared key for the HMAC TLV of segment routing headers (RFC 8754 section 2.1.2).
type HMACKey struct {
	// by which packets name it
	ID int `key:"id" range:"1 4294967295"`
	// absolute path of the file with the key, with the mode 0600 or 0640
	KeyFile string   `key:"keyFile"`
	Form    HMACForm `key:"form" default:"rfc8754"`
	// what KeyFile holds; the zero value as long as it has not been read
	Secret srv6.HMACSecret `secret:"key"`
}

// HMAC says which packets to a host's SIDs must carry an HMAC, and under which keys.
type HMAC struct {
	Require HMACRequire `key:"require" default:"srh"`
	// all are accepted
	Keys []HMACKey `key:"keys" item:"host hmac key %s"`
}

// HMACForm is what an HMAC is computed over.
type HMACForm string

// The forms.
const (
	HMACStandard HMACForm = "rfc8754"
	HMACLinux    HMACForm = "linux" // as Linux does it, which differs
)

// HMACRequire says which packets must carry an HMAC.
type HMACRequire string

// The requirements. An HMAC that is there must always be right.
const (
	HMACRequireNone HMACRequire = "none"
	HMACRequireSRH  HMACRequire = "srh" // packets with a segment routing header
	HMACRequireAll  HMACRequire = "all" // and there are no others
)

const (
	maxHMACKeys = 64 // HMAC_KEYS in bpf/include/hmac.h
)

// Key is the key as it is computed with. It is a wrong one as long as KeyFile has not been read.
func (k HMACKey) Key() srv6.HMACKey {
	key := srv6.HMACKey{ID: uint32(k.ID), Secret: k.Secret}
	if k.Form == HMACLinux {
		key.Form = srv6.HMACLinux
	}
	return key
}

// HMACKeys lists the keys of all roles, to be filled in.
func (n *Node) HMACKeys() (keys []*HMACKey) {
	if n.Edge != nil && n.Edge.HMAC != nil {
		keys = append(keys, n.Edge.HMAC)
	}
	if n.Host != nil && n.Host.HMAC != nil {
		for i := range n.Host.HMAC.Keys {
			keys = append(keys, &n.Host.HMAC.Keys[i])
		}
	}
	return keys
}

func (c *checker) hmacKey(where string, k HMACKey) {
	c.directory(join(where, "keyFile"), k.KeyFile)
}

func (c *checker) edgeHMAC(e *Edge) {
	if e.HMAC == nil {
		return
	}
	c.hmacKey("edge.hmac", *e.HMAC)
	if e.Encapsulation == Carrier {
		c.conflict("edge.hmac", "encapsulation carrier has no segment routing header in which an "+
			"HMAC could be",
			"choose encapsulation srh or srh-reduced, or delete hmac", "edge.encapsulation")
	}
}

func (c *checker) hostHMAC(h *HMAC) {
	if h == nil {
		return
	}
	c.some("host.hmac.keys", len(h.Keys), "there is no key",
		`add "- {id: 7, keyFile: /etc/sextant/hmac.7}"`)
	c.count("host.hmac.keys", "keys", len(h.Keys), maxHMACKeys)
	ids := unique[int]{}
	for i, k := range h.Keys {
		where := fmt.Sprintf("host.hmac.keys[%d]", i)
		c.hmacKey(where, k)
		ids.once(c, join(where, "id"), k.ID, "give each key its own id", "key %d is given twice")
	}
}

// String writes the key as a person would, without what is secret.
func (k HMACKey) String() string {
	return fmt.Sprintf("key %d in %s, form %s", k.ID, k.KeyFile, k.Form)
}

// String writes the requirement and the ids of the keys.
func (h *HMAC) String() string {
	if h == nil {
		return ""
	}
	ids := lists.Map(h.Keys, func(k HMACKey) string { return fmt.Sprint(k.ID) })
	return fmt.Sprintf("require %s, keys %s", h.Require, strings.Join(ids, " "))
}
