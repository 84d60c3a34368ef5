package pool

import (
	"fmt"
	"slices"
)

// Policy says how connections survive a change of the pool.
type Policy uint8

const (
	// Offer writes the bucket's chain into each packet: current candidates, then previous owners.
	Offer Policy = iota
	// ECMP sends each packet to the bucket's one owner, as a router does: a connection whose bucket
	// moves is lost.
	ECMP
	// Shadow is VRF-shadowing (Nakamura et al., "Exploiting SRv6", section III): the edge sends a
	// packet to the bucket's one owner; a host that does not know the connection sends it back, and
	// the edge sends it to the owner before the latest change.
	Shadow
)

var policyNames = [...]string{Offer: "offer", ECMP: "ecmp", Shadow: "shadow"}

// String returns the name that configuration files use.
func (p Policy) String() string { return name(policyNames[:], int(p), "Policy") }

// ParsePolicy reads "offer", "ecmp" or "shadow".
func ParsePolicy(text string) (Policy, error) {
	i, err := parse(policyNames[:], text, "policy")
	return Policy(i), err
}

// Method says which backends a bucket's candidates are.
type Method uint8

const (
	// Rendezvous ranks the backends for each bucket by a hash. It depends on the backends alone, so
	// edges that know the same backends agree, whatever they saw before. Shares are right up to
	// chance. A change moves only what must move.
	Rendezvous Method = iota
	// Exact gives each backend its exact share, and a change moves only what must move. It depends
	// on the past: edges agree only if they saw the same changes.
	Exact
	// Modulo takes the bucket modulo the number of backends, as a router's plain ECMP does: a
	// change moves nearly all.
	Modulo
)

var methodNames = [...]string{Rendezvous: "rendezvous", Exact: "exact", Modulo: "modulo"}

// String returns the name that configuration files use.
func (m Method) String() string { return name(methodNames[:], int(m), "Method") }

// ParseMethod reads "rendezvous", "exact" or "modulo".
func ParseMethod(text string) (Method, error) {
	i, err := parse(methodNames[:], text, "table")
	return Method(i), err
}

func name(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parse(names []string, text, what string) (int, error) {
	if i := slices.Index(names, text); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("unknown %s %q; use one of %q", what, text, names)
}
