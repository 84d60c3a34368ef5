package packettest

import (
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// SumCase is a way in which edge or host rewrites a packet with a checksum.
type SumCase struct {
	// a client's packet to the edge; else one in outer headers to a host, with an MSS of 1,400 or
	// 1,380
	Edge bool
	// Rewritten returns a packet of which one word has the given value, and how the inner packet
	// ends up.
	Rewritten func(t testing.TB, word uint16) (before, after []byte)
}

// SumCases are all of them. After is what an independent library makes of the changed values.
func SumCases(t testing.TB) map[string]SumCase {
	t.Helper()
	identified := func(p Packet, word uint16) Packet {
		p.ID = word
		return p
	}
	return map[string]SumCase{
		"hop": {Edge: true, Rewritten: func(t testing.TB, word uint16) ([]byte, []byte) {
			p := identified(Web4("A"), word)
			before := p.Bytes(t)
			p.HopLimit = 56
			return before, p.Bytes(t)
		}},
		"ECN": {Rewritten: func(t testing.TB, word uint16) ([]byte, []byte) {
			p, around := identified(Web4("A"), word), To(DT46SID)
			p.TrafficClass, around.TrafficClass = 2, 3
			before := around.Around(t, p.Bytes(t))
			p.TrafficClass = 3
			return before, p.Bytes(t)
		}},
		"MSS": {Rewritten: func(t testing.TB, word uint16) ([]byte, []byte) {
			p := Web4("S").Numbered(uint32(word), 0).With(MSS(9000))
			before := To(OfferSID).Around(t, p.Bytes(t))
			return before, p.With(MSS(1400)).Bytes(t)
		}},
		"MSS at an odd offset": {Rewritten: func(t testing.TB, word uint16) ([]byte, []byte) {
			nop := layers.TCPOption{OptionType: layers.TCPOptionKindNop, OptionLength: 1}
			p := Web6("S").Numbered(uint32(word), 0).With(nop, MSS(9000))
			before := To(OfferSID).Around(t, p.Bytes(t))
			return before, p.With(nop, MSS(1380)).Bytes(t)
		}},
		"stray": {Rewritten: func(t testing.TB, word uint16) ([]byte, []byte) {
			p := identified(Web4("A"), word)
			before := To(CondSID).Around(t, p.Bytes(t))
			p.HopLimit = 56
			return before, p.Bytes(t)
		}},
	}
}
