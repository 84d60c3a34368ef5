package discovery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/config"
)

// Member is a backend that was learned. It is kept from one decision to the next, and over
// restarts.
type Member struct {
	Endpoint      config.Endpoint `json:"endpoint"`
	SID           netip.Addr      `json:"sid"`
	Distinguisher string          `json:"distinguisher"`
	Peers         []netip.Addr    `json:"peers"` // who told of it, in ascending order
	Weight        int             `json:"weight"`
	Draining      bool            `json:"draining"`
	Withdrawn     time.Time       `json:"withdrawn,omitzero"` // since when no peer tells of it
}

// Equal reports whether nothing about the member differs.
func (m Member) Equal(other Member) bool {
	return m.Endpoint == other.Endpoint && m.SID == other.SID &&
		m.Distinguisher == other.Distinguisher && m.Weight == other.Weight &&
		m.Draining == other.Draining && m.Withdrawn.Equal(other.Withdrawn) && slices.Equal(m.Peers,
		other.Peers)
}

// Backend is the member as a backend of its service.
func (m Member) Backend() config.Backend {
	b := config.Backend{Name: Name(m.Source(), m.SID), SID: m.SID, Weight: m.Weight,
		State: config.Up}
	if m.Draining {
		b.State = config.Draining
	}
	return b
}

// Source says by which way routing told of the member; if by several, it is the first by name.
func (m Member) Source() Source {
	source := Source("")
	for _, p := range m.Peers {
		if s := SourceOf(p); source == "" || s < source {
			source = s
		}
	}
	return cmp.Or(source, BGP)
}

// Name is what a learned backend is called: where it was learned from and its SID with dashes for
// colons, like bgp-fcbb-bb00-1, so that it can be a label and part of a path.
func Name(source Source, sid netip.Addr) string {
	return string(source) + "-" + strings.TrimRight(strings.ReplaceAll(sid.String(), ":", "-"), "-")
}

// Session is what a peer's word is worth.
type Session uint8

const (
	// Lost: the peer is gone, and of whom only it told drains.
	Lost Session = iota
	// Settling: the session restarts gracefully, or the peer has not yet told all it knows. What it
	// told before holds.
	Settling
	// Standing: what the peer does not tell is withdrawn.
	Standing
)

// String returns the word for it.
func (s Session) String() string {
	names := [...]string{Lost: "lost", Settling: "settling", Standing: "standing"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Session(%d)", uint8(s))
}
