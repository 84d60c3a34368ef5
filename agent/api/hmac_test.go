package api_test

import (
	"strings"
	"testing"

	"sextant/agent/api"
)

// Keys of HMACs are read from their files; what is wrong with one is said without its content.
func TestLoadNodeWithHMACKeys(t *testing.T) {
	write := files(t)
	node := func(name, edgeKey, hostKey string) string {
		text := strings.Replace(nodeFile, "  source: fd00:5e::e1\n",
			"  source: fd00:5e::e1\n  encapsulation: srh\n  hmac: {id: 7, keyFile: "+edgeKey+"}\n",
			1)
		return write(name, strings.Replace(text, "host:\n", "host:\n  hmac: {keys: [{id: 7, "+
			"keyFile: "+hostKey+"}, {id: 8, keyFile: "+edgeKey+"}]}\n", 1))
	}
	good, other, bad := write("good", strings.Repeat("a5", 32)+"\n"),
		write("other", strings.Repeat("5A", 16)), write("bad", strings.Repeat("a5", 32)+"g")
	n, err := api.LoadNode(node("good.yaml", good, other))
	if err != nil || string(n.Edge.HMAC.Secret.Octets()) != strings.Repeat("\xa5", 32) ||
		string(n.Host.HMAC.Keys[0].Secret.Octets()) != strings.Repeat("Z", 16) ||
		!n.Host.HMAC.Keys[1].Secret.Equal(n.Edge.HMAC.Secret) {
		t.Errorf("LoadNode: %v", err)
	}
	for file, want := range map[string]string{
		node("none.yaml", good, "/no/key"): "HMAC key 7: read keyFile /no/key: no such file or " +
			"directory; make it with: openssl rand -hex 32",
		node("bad.yaml", good, bad): "HMAC key 7: keyFile " + bad +
			": the key is not 32 to 128 hexadecimal digits",
	} {
		if _, err := api.LoadNode(file); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "a5a5") {
			t.Errorf("LoadNode(%s) = %v, want it to tell %q", file, err, want)
		}
	}
}
