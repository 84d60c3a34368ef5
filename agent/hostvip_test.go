package agent_test

import (
	"slices"
	"strings"
	"testing"
)

// A host whose VIP is no address of its machine takes connections that get no answer, and says so.
func TestHostWithoutItsVIP(t *testing.T) {
	m := newMachine(t)
	m.ip("link set lo up\naddr add 2001:db8:80::81/128 dev lo nodad")
	r := m.start(nodeText)
	defer r.stop()
	warns := func() bool {
		s, err := r.Status(t.Context())
		must(t, err)
		return slices.ContainsFunc(s.Warnings, func(w string) bool {
			return strings.HasPrefix(w, "clients of 2001:db8:80::81 get no answer") &&
				strings.HasSuffix(w, "ip addr add 2001:db8:80::81/128 dev lo")
		})
	}
	if warns() {
		t.Error("it warns of a VIP that is there")
	}
	m.ip("link set lo down\nlink set lo up") // which takes addresses of IPv6 along
	if !warns() {
		t.Error("it does not warn when the VIP is gone")
	}
	m.ip("addr add 2001:db8:80::81/128 dev lo nodad")
	if warns() {
		t.Error("it warns of a VIP that is there again")
	}
}
