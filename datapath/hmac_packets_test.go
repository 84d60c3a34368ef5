package datapath

import (
	"cmp"
	"fmt"
	"testing"

	"sextant/datapath/packettest"
	"sextant/lb/pool"
	"sextant/packet/srv6"
)

// signings are keys in both forms, and the same as the programs get them.
func signings(t testing.TB) map[string]packettest.Signing {
	return map[string]packettest.Signing{
		"rfc8754": {ID: 7, Secret: "a secret of the edges"},
		"linux":   {ID: 0xdeadbeef, Secret: "a secret of the edges", Linux: true},
	}
}

func hmacKeyOfSigning(t testing.TB, s packettest.Signing) srv6.HMACKey {
	form := srv6.HMACStandard
	if s.Linux {
		form = srv6.HMACLinux
	}
	return hmacKeyOfText(t, s.ID, form, s.Secret)
}

// TestHMACEncapsulation compares the whole frame: both encapsulations that can be signed with one
// to six ids, both forms, every kind of packet, no to two VLAN tags, with and without padding, and
// every way out.
func TestHMACEncapsulation(t *testing.T) {
	w := newWorld(t)
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}
	for _, encapsulation := range []Encapsulation{SRH, SRHReduced} {
		e := tableEdge(t, w, encapsulation, func(c *EdgeConfig) { c.Signs = true })
		edge := w.edgeSubject(e, External)
		for form, signing := range signings(t) {
			must(t, e.SetSigningKey(hmacKeyOfSigning(t, signing)))
			for _, out := range []way{wayBack, wayElsewhere, wayUnknown} {
				out.lead(t, e)
				for n := 1; n <= pool.MaxChain; n++ {
					serveAll(t, e, 1, ids[:n]...)
					for kind, packet := range packettest.Kinds(packettest.Web4("A"),
						packettest.Web6("A")) {
						w.run(t, fmt.Sprintf("%s/%s/%s/%d/%s", encapsulationNames[encapsulation],
							form, out.outcome, n, kind), func(t *testing.T) {
							checkSigned(t, edge, signing, encapsulationNames[encapsulation], packet,
								ids[:n], out)
						})
					}
				}
			}
		}
	}
}

func checkSigned(t *testing.T, edge subject, signing packettest.Signing, encapsulation string,
	packet packettest.Packet, ids []uint16, out way) {
	t.Helper()
	if packet.Flow().Protocol == 17 {
		ids = ids[:1]
	}
	want := signing.Encapsulated(t, encapsulation, ids, label(packet.Flow()), packet.TrafficClass,
		packet.Bytes(t))
	checkEncapsulated(t, edge, packet, want, out)
}

// TestHMACMTU: the TLV counts, to the byte.
func TestHMACMTU(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	signing := signings(t)["rfc8754"]
	for _, encapsulation := range []Encapsulation{SRH, SRHReduced} {
		for _, ids := range [][]uint16{{1}, {1, 2, 3}} {
			e := tableEdge(t, w, encapsulation, func(c *EdgeConfig) { c.Signs = true })
			must(t, e.SetSigningKey(hmacKeyOfSigning(t, signing)))
			serveAll(t, e, 1, ids...)
			edge := w.edgeSubject(e, External)
			packet := packettest.Web6("A")
			around := len(signing.Encapsulated(t, encapsulationNames[encapsulation], ids, 1,
				0, packet.Bytes(t)))
			packet.Payload = make([]byte, 1500-around)
			checkSigned(t, edge, signing, encapsulationNames[encapsulation], packet, ids,
				wayElsewhere)
			packet.Payload = append(packet.Payload, 0)
			if outcome, _ := edge.process(t,
				packettest.FromClient().Frame(t, packet.Bytes(t))); outcome != "too_big_answered" {
				t.Errorf("%s of %d: a packet of 1501 bytes: %s", encapsulationNames[encapsulation],
					len(ids), outcome)
			}
		}
	}
}

// TestHMACCases: headers of all kinds, broken ones too, meet the fate that the shared table says,
// and no other counter rises.
func TestHMACCases(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	h, host := tableHost(t, w, func(c *HostConfig) { c.HMAC = HMACSRH })
	for form, signing := range signings(t) {
		must(t, h.SetHMACKeys([]srv6.HMACKey{hmacKeyOfSigning(t, signing)}))
		for _, test := range signing.HMACCases(t) {
			for _, time := range []string{"first", "again"} { // when what was right is remembered
				w.run(t, form+"/"+test.Name+"/"+time, func(t *testing.T) { host.check(t, test) })
			}
		}
	}
}

// TestHMACRules: what differs between the rules.
func TestHMACRules(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	signing := signings(t)["rfc8754"]
	for _, test := range []struct {
		rule HMACRule
		want map[string]string
	}{
		{HMACNone, map[string]string{"no SRH": "take", "no TLV": "redirect",
			"another secret": "redirect", "two HMACs": "redirect"}},
		{HMACPresent, map[string]string{"no SRH": "take", "no TLV": "redirect",
			"another secret": "hmac_wrong", "two HMACs": "bad_srh"}},
		{HMACAll, map[string]string{"no SRH": "hmac_missing", "no TLV": "hmac_missing",
			"another secret": "hmac_wrong", "signed": "redirect"}},
	} {
		h, host := tableHost(t, w, func(c *HostConfig) { c.HMAC = test.rule })
		must(t, h.SetHMACKeys([]srv6.HMACKey{hmacKeyOfSigning(t, signing)}))
		seen := 0
		for _, c := range signing.HMACCases(t) {
			if want, ok := test.want[c.Name]; ok {
				seen++
				c.Want = want
				w.run(t, fmt.Sprintf("rule %d/%s", test.rule, c.Name),
					func(t *testing.T) { host.check(t, c) })
			}
		}
		if seen != len(test.want) {
			t.Errorf("rule %d: %d cases of %d", test.rule, seen, len(test.want))
		}
	}
}

// TestHMACExplained: packets are explained with the keys that are in use, and nothing is remembered
// or counted by that.
func TestHMACExplained(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	signing := signings(t)["rfc8754"]
	h, _ := tableHost(t, w, func(c *HostConfig) { c.HMAC = HMACSRH })
	must(t, h.SetHMACKeys([]srv6.HMACKey{hmacKeyOfSigning(t, signing)}))
	x, err := h.Explainer()
	must(t, err)
	defer x.Close()
	for _, c := range signing.HMACCases(t) {
		if c.Want != "redirect" && c.Want != "hmac_wrong" && c.Want != "hmac_key" &&
			c.Want != "hmac_missing" {
			continue
		}
		e, err := x.Run(w.near, c.Frame)
		must(t, err)
		if got := cmp.Or(e.Reason, e.Outcome); got != c.Want && got != c.Want+"ed" {
			t.Errorf("%s: explained as %s, want %s", c.Name, got, c.Want)
		}
	}
	drops, err := h.Drops()
	must(t, err)
	for _, d := range drops {
		if d.Packets != 0 {
			t.Errorf("%d packets are counted as %s", d.Packets, d.Name)
		}
	}
	for _, use := range h.Maps() {
		if use.Name == "hmac_known" && use.Entries != 0 {
			t.Errorf("%d HMACs are remembered", use.Entries)
		}
	}
}
