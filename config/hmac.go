package config

import (
	"fmt"
	"slices"
	"strings"

	"sextant/srv6"
)

// HMACKey is a pre-shared key for the HMAC TLV of segment routing headers (RFC 8754 section 2.1.2).
type HMACKey struct {
	ID      int // by which packets name it
	KeyFile string
	Form    HMACForm
	Secret  srv6.HMACSecret // what KeyFile holds; the zero value as long as it has not been read
}

// HMAC says which packets to a host's SIDs must carry an HMAC, and under which keys.
type HMAC struct {
	Require HMACRequire
	Keys    []HMACKey // all are accepted
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
	maxHMACKeys  = 64        // HMAC_KEYS in bpf/include/hmac.h
	maxHMACKeyID = 1<<32 - 1 // 32 bits; 0 is none
)

var (
	hmacForms    = []HMACForm{HMACStandard, HMACLinux}
	hmacRequires = []HMACRequire{HMACRequireNone, HMACRequireSRH, HMACRequireAll}
)

// Key is the key as it is computed with. It is a wrong one as long as KeyFile has not been read.
func (k HMACKey) Key() srv6.HMACKey {
	key := srv6.HMACKey{ID: uint32(k.ID), Secret: k.Secret}
	if k.Form == HMACLinux {
		key.Form = srv6.HMACLinux
	}
	return key
}

func (h *HMAC) clone() *HMAC {
	if h == nil {
		return nil
	}
	return &HMAC{h.Require, slices.Clone(h.Keys)}
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

func readHMACKey(v value) HMACKey {
	k := HMACKey{Form: HMACStandard}
	v.mapping(
		field{"id", intoNumber(&k.ID), `"id: " and the number by which packets name the key`},
		field{"keyFile", intoText(&k.KeyFile), `"keyFile: " and the path of a file with the key`},
		field{"form", intoText(&k.Form), ""},
	)
	return k
}

func readHMAC(v value, h *HMAC) {
	h.Require = HMACRequireSRH
	v.mapping(
		field{"require", intoText(&h.Require), ""},
		field{"keys", intoList(&h.Keys, readHMACKey), `"keys:" and a list like "- {id: 7, keyFile: /etc/sextant/hmac.7}"`},
	)
}

func (c *checker) hmacKey(where string, k HMACKey) {
	c.number(join(where, "id"), "id", k.ID, 1, maxHMACKeyID)
	c.directory(join(where, "keyFile"), k.KeyFile)
	word(c, join(where, "form"), "form", k.Form, hmacForms)
}

func (c *checker) edgeHMAC(e *Edge) {
	if e.HMAC == nil {
		return
	}
	c.hmacKey("edge.hmac", *e.HMAC)
	if e.Encapsulation == Carrier {
		c.conflict("edge.hmac", "encapsulation carrier has no segment routing header in which an HMAC could be",
			"choose encapsulation srh or srh-reduced, or delete hmac", "edge.encapsulation")
	}
}

func (c *checker) hostHMAC(h *HMAC) {
	if h == nil {
		return
	}
	word(c, "host.hmac.require", "require", h.Require, hmacRequires)
	if len(h.Keys) == 0 {
		c.invalid("host.hmac.keys", "there is no key", `add "- {id: 7, keyFile: /etc/sextant/hmac.7}"`)
	}
	c.count("host.hmac.keys", "keys", len(h.Keys), maxHMACKeys)
	ids := unique[int]{}
	for i, k := range h.Keys {
		where := fmt.Sprintf("host.hmac.keys[%d]", i)
		c.hmacKey(where, k)
		if _, taken := ids.add(k.ID, where); taken {
			c.conflict(join(where, "id"), fmt.Sprintf("key %d is given twice", k.ID), "give each key its own id")
		}
	}
}

type documentHMACKey struct {
	ID      int      `yaml:"id" json:"id"`
	KeyFile string   `yaml:"keyFile" json:"keyFile"`
	Form    HMACForm `yaml:"form" json:"form"`
}

type documentHMAC struct {
	Require HMACRequire       `yaml:"require" json:"require"`
	Keys    []documentHMACKey `yaml:"keys" json:"keys"`
}

func hmacKeyDocument(k *HMACKey) *documentHMACKey {
	if k == nil {
		return nil
	}
	return &documentHMACKey{k.ID, k.KeyFile, k.Form}
}

func hmacDocument(h *HMAC) *documentHMAC {
	if h == nil {
		return nil
	}
	return &documentHMAC{h.Require, each(h.Keys, func(k HMACKey) documentHMACKey { return *hmacKeyDocument(&k) })}
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
	ids := each(h.Keys, func(k HMACKey) string { return fmt.Sprint(k.ID) })
	return fmt.Sprintf("require %s, keys %s", h.Require, strings.Join(ids, " "))
}

func (d *differ) hmacKey(title string, a, b HMACKey) {
	d.number(title, "id", a.ID, b.ID)
	d.modify(title, "keyFile", a.KeyFile, b.KeyFile)
	d.modify(title, "form", string(a.Form), string(b.Form))
	if !a.Secret.Equal(b.Secret) {
		d.modify(title, "key", "(not shown)", "(another, not shown)")
	}
}

func (d *differ) edgeHMAC(a, b *HMACKey) {
	switch {
	case a != nil && b != nil:
		d.hmacKey("edge hmac", *a, *b)
	case a != nil:
		d.remove("edge hmac", a.String())
	case b != nil:
		d.add("edge hmac", b.String())
	}
}

func (d *differ) hostHMAC(a, b *HMAC) {
	switch {
	case a == nil && b == nil:
		return
	case a == nil:
		d.add("host hmac", b.String())
		return
	case b == nil:
		d.remove("host hmac", a.String())
		return
	}
	d.modify("host hmac", "require", string(a.Require), string(b.Require))
	named(d, a.Keys, b.Keys,
		func(k HMACKey) string { return fmt.Sprint(k.ID) },
		func(k HMACKey) (string, string) {
			return fmt.Sprintf("host hmac key %d", k.ID), fmt.Sprintf("in %s, form %s", k.KeyFile, k.Form)
		},
		d.hmacKey)
}
