package config_test

import (
	"fmt"
	"strings"
	"testing"

	"sextant/config"
	"sextant/packet/srv6"
)

// What changes about HMACs is told by names, and never by what is secret.
func TestDiffHMAC(t *testing.T) {
	secret := func(octets string) srv6.HMACSecret {
		s, err := srv6.ParseHMACSecret(strings.Repeat(octets, 32))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := load(t, "hmac"), load(t, "hmac")
	for _, n := range []*config.Node{a, b} {
		for _, k := range n.HMACKeys() {
			k.Secret = secret("a5")
		}
	}
	same, err := config.Fingerprint(a)
	if err != nil {
		t.Fatal(err)
	}
	b.Edge.HMAC.Secret = secret("5a")
	if other, err := config.Fingerprint(b); err != nil || other == same {
		t.Errorf("another key has the fingerprint %s, %v", other, err)
	}
	b.Host.HMAC.Require = config.HMACRequireAll
	b.Host.HMAC.Keys[1].ID = 8
	b.Host.HMAC.Keys[0].Form = config.HMACLinux
	want := `~ edge hmac: key (not shown) -> (another, not shown)
~ host hmac: require srh -> all
~ host hmac key 4294967295: form rfc8754 -> linux
- host hmac key 7 (in /etc/sextant/hmac.7, form linux)
+ host hmac key 8 (in /etc/sextant/hmac.7, form linux)
`
	if got := diffText(a, b); got != want {
		t.Errorf("diff:\n%s\nwant:\n%s", got, want)
	}
	without := a.Clone()
	without.Edge.HMAC, without.Host.HMAC = nil, nil
	if a.Edge.HMAC == nil || a.Host.HMAC == nil {
		t.Error("a clone shares its keys")
	}
	for _, test := range []struct {
		from, to *config.Node
		sign     string
	}{{a, without, "-"}, {without, a, "+"}} {
		want := fmt.Sprintf(`%s edge hmac (key 4294967295 in /etc/sextant/hmac.new, form rfc8754)
%[1]s host hmac (require srh, keys 4294967295 7)
`, test.sign)
		if got := diffText(test.from, test.to); got != want {
			t.Errorf("diff:\n%s\nwant:\n%s", got, want)
		}
	}
	for name, n := range map[string]*config.Node{"a": a, "b": b} {
		text, err := config.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if shown := fmt.Sprintf("%s %+v %+v", text, *n.Edge.HMAC,
			n.Host.HMAC); strings.Contains(shown, "a5a5") || strings.Contains(shown, "5a5a") {
			t.Errorf("node %s shows a key: %s", name, shown)
		}
	}
}
