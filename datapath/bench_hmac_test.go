package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

// benchListed is a packet as an edge sends it to a host with a list of two segments, the host's
// first; signed unless the key is nil.
func benchListed(t testing.TB, p packettest.Packet, flows int, key *srv6.HMACKey) benchFrame {
	t.Helper()
	outer := packettest.Outer{HopLimit: 64, Src: netip.MustParseAddr("fd00:5e::e1"),
		Dst: sidOf(t, block(t), 1)}
	header, err := srv6.NewSRH(uint8(layers.IPProtocolIPv6),
		[]netip.Addr{outer.Dst, sidOf(t, block(t), 2)})
	must(t, err)
	if key != nil {
		header, err = key.Sign(outer.Src, header)
		must(t, err)
	}
	octets, err := header.AppendBinary(nil)
	must(t, err)
	f := benchArriving(t, p, flows)
	f.octets = benchLink.Frame(t, outer.With(layers.IPProtocolIPv6Routing, octets).Around(t,
		f.octets[ethernetHeader:]))
	f.source += ipv6Header + len(octets)
	f.ports += ipv6Header + len(octets)
	return f
}

// hmacRows are of signed headers, each behind the same without: an HMAC that is remembered, as
// nearly all are, and one that has to be computed.
func hmacRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	key := hmacKeyOfText(t, 7, srv6.HMACStandard, string(bytes.Repeat([]byte{1}, 32)))
	wrong := hmacKeyOfText(t, 7, srv6.HMACStandard, string(bytes.Repeat([]byte{2}, 32)))
	plainEdge, signing := newBenchEdge(t, w, SRH),
		newBenchEdge(t, w, SRH, func(c *EdgeConfig) { c.Signs = true })
	must(t, signing.SetSigningKey(key))
	config := hostConfig(t)
	config.SIDs = []LocalSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
		Behavior: srv6.EndOFFER}}
	policy := acceptance.Policy{Kind: acceptance.Static, Threshold: 4}
	plainHost := newBenchHost(t, w, config, policy)
	config.HMAC = HMACSRH
	verifying := newBenchHost(t, w, config, policy)
	must(t, verifying.SetHMACKeys([]srv6.HMACKey{key}))
	attacked := newBenchHost(t, w, config, policy) // sees no right HMAC, so that each is computed
	must(t, attacked.SetHMACKeys([]srv6.HMACKey{key}))
	edge := func(name string, e *Edge) benchRow {
		return benchRow{
			name: name, program: e.programs[External],
			frame:   benchArriving(t, benchACK(benchClientV6, hostVIPv6), 1<<17),
			verdict: xdpTransmit, counted: benchOutcome(t, e.collection, "transmitted"),
		}
	}
	host := func(name string, h *Host, key *srv6.HMACKey) benchRow {
		return benchRow{
			name: name, program: h.programs["host"],
			frame:   benchListed(t, benchSYN(benchStrangerV6, hostVIPv6), 1<<17, key),
			verdict: xdpPass, counted: benchOutcome(t, h.collection, "taken"),
		}
	}
	forged := host("host, computes the HMAC of a list of 2 segments, which is wrong", attacked,
		&wrong)
	forged.verdict, forged.counted = xdpDrop, benchDrops(t, attacked.collection, "hmac_wrong")
	return []benchRow{
		edge("edge, SRH of all segments, 131,072 flows", plainEdge),
		edge("edge, the same, signed", signing),
		host("host, takes a SYN with a list of 2 segments", plainHost, nil),
		host("host, the same, verified", verifying, &key),
		forged,
	}
}
