package rib

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"sextant/linux/rtnetlink"
	"sextant/packet/lists"
)

// Set is the next hops of a route. Sets of the same hops are equal, in whatever order they were
// told: so flows of a set go where those of an equal one go. The zero value is no route.
type Set struct {
	// buckets, whether they are drawn (then a hop for each follows), then the hops, else in
	// ascending order
	text unique.Handle[string]
}

// NewSet makes a set of hops that all have segments; ok is false if one has none, or there are
// none. The weights of a hop that is there twice add up. Buckets are those of a resilient group, 0
// of another one.
func NewSet(hops []rtnetlink.Hop, buckets int) (s Set, ok bool) {
	texts := make([]string, len(hops))
	weights := map[string]int{}
	for i, h := range hops {
		if len(h.Segments) == 0 || h.Mode != rtnetlink.Encap && h.Mode != rtnetlink.EncapReduced {
			return Set{}, false
		}
		texts[i] = textOf(h)
		weights[texts[i]] = min(weights[texts[i]]+h.Weight, maxWeight)
	}
	if len(hops) == 0 {
		return Set{}, false
	}
	slices.Sort(texts)
	b := head(buckets, false)
	for _, text := range slices.Compact(texts) {
		b = appendHop(b, weights[text], text)
	}
	return Set{unique.Make(string(b))}, true
}

const headLength = 5

func head(buckets int, drawn bool) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(buckets)), 0)
	if drawn {
		b[4] = 1
	}
	return b
}

func appendHop(b []byte, weight int, text string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(weight-1))
	return append(append(b, uint8(len(text)/16)), text...)
}

// maxWeight is what a next hop of a group can have at most, in kernels before 6.12.
const maxWeight = 256

// textOf writes mode and segments of a hop: 16 bytes for each segment, and one.
func textOf(h rtnetlink.Hop) string {
	b := []byte{uint8(h.Mode)}
	for _, s := range h.Segments {
		a := s.As16()
		b = append(b, a[:]...)
	}
	return string(b)
}

// Members lists the hops, each once. If buckets are drawn, the weight of a hop is how many it has.
func (s Set) Members() []rtnetlink.Hop {
	if !s.drawn() {
		return s.Hops()
	}
	counts, texts := map[string]int{}, []string{}
	for _, h := range s.Hops() {
		text := textOf(h)
		if counts[text]++; counts[text] == 1 {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	b := head(0, false)
	for _, text := range texts {
		b = appendHop(b, counts[text], text)
	}
	return Set{unique.Make(string(b))}.Hops()
}

// Hops lists the hops, always in the same order, with their weights. If buckets are drawn there is
// one for each, with weight 1.
func (s Set) Hops() (hops []rtnetlink.Hop) {
	if s == (Set{}) {
		return nil
	}
	for text := s.text.Value()[headLength:]; text != ""; {
		h := rtnetlink.Hop{Weight: int(text[0])<<8 + int(text[1]) + 1,
			Mode: rtnetlink.Mode(text[3]), Segments: make([]netip.Addr, text[2])}
		text = text[4:]
		for i := range h.Segments {
			h.Segments[i], text = netip.AddrFrom16([16]byte([]byte(text[:16]))), text[16:]
		}
		hops = append(hops, h)
	}
	return hops
}

// Buckets is how many parts of the flows a resilient group tells apart; 0: it is no such group.
func (s Set) Buckets() int {
	if s == (Set{}) {
		return 0
	}
	return int(binary.BigEndian.Uint32([]byte(s.text.Value()[:4])))
}

// WithBuckets is the set, as long as its buckets are not drawn, with another number of them.
func (s Set) WithBuckets(buckets int) Set {
	if s == (Set{}) || s.Buckets() == buckets || s.drawn() {
		return s
	}
	return Set{unique.Make(string(head(buckets, false)) + s.text.Value()[headLength:])}
}

// covers reports whether all hops of another set are in this one, with whatever weight.
func (s Set) covers(other Set) bool {
	if s == other || other == (Set{}) {
		return true
	}
	there := map[string]bool{}
	for _, h := range s.Hops() {
		there[textOf(h)] = true
	}
	return !slices.ContainsFunc(other.Hops(),
		func(h rtnetlink.Hop) bool { return !there[textOf(h)] })
}

func (s Set) drawn() bool { return s != (Set{}) && s.text.Value()[4] == 1 }

// String writes the hops for people: "fcbb:bb00:1:: fcbb:bb00:2:: weight 2", or "none".
func (s Set) String() string {
	if s == (Set{}) {
		return "none"
	}
	words := lists.Map(s.Members(), HopText)
	return strings.Join(words, " ")
}

// HopText writes a hop's segments, joined by commas, with its weight unless that is 1.
func HopText(h rtnetlink.Hop) string {
	segments := lists.Map(h.Segments, netip.Addr.String)
	text := strings.Join(segments, ",")
	if h.Weight != 1 {
		text += fmt.Sprintf(" weight %d", h.Weight)
	}
	return text
}
