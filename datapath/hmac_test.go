package datapath

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

func hmacKeyOfText(t testing.TB, id uint32, form srv6.HMACForm, secret string) srv6.HMACKey {
	t.Helper()
	s, err := srv6.NewHMACSecret([]byte(secret))
	must(t, err)
	return srv6.HMACKey{ID: id, Form: form, Secret: s}
}

// hmacKeysAccepted are a host's, in both forms, with a short secret and the longest.
func hmacKeysAccepted(t testing.TB) []srv6.HMACKey {
	return []srv6.HMACKey{
		hmacKeyOfText(t, 7, srv6.HMACStandard, "a secret of the edges"),
		hmacKeyOfText(t, 0xdeadbeef, srv6.HMACLinux,
			string(bytes.Repeat([]byte{0xa5}, srv6.MaxHMACSecret))),
	}
}

// hmacKeysOnWire are those with which packets to a host are signed: some are not known, or have
// another secret or form.
func hmacKeysOnWire(t testing.TB) []srv6.HMACKey {
	accepted := hmacKeysAccepted(t)
	return slices.Concat(accepted, accepted, accepted, []srv6.HMACKey{
		hmacKeyOfText(t, 8, srv6.HMACStandard, "a secret of the edges"),
		hmacKeyOfText(t, 7, srv6.HMACStandard, "a secret of somebody"),
		hmacKeyOfText(t, 7, srv6.HMACLinux, "a secret of the edges"),
		hmacKeyOfText(t, 0, srv6.HMACStandard, "a secret of the edges"),
	})
}

// accept gives program and model the same keys.
func (h *twoHosts) accept(t testing.TB, keys []srv6.HMACKey) {
	t.Helper()
	must(t, h.program.SetHMACKeys(keys))
	h.model.HMAC, h.model.HMACKeys = h.program.config.HMAC,
		map[uint32]srv6.HMACKey{}
	for _, k := range keys {
		h.model.HMACKeys[k.ID] = k
	}
}

// sign gives program and model the same key.
func (e *twoEdges) sign(t testing.TB, key srv6.HMACKey) {
	t.Helper()
	must(t, e.program.SetSigningKey(key))
	e.model.HMAC = &key
}

// TestHMACEdgeAgreesWithModel: the same generated frames, with each encapsulation that can be
// signed, in both forms.
func TestHMACEdgeAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for seed, encapsulation := range []Encapsulation{SRH, SRHReduced} {
		for _, key := range hmacKeysAccepted(t) {
			config := edgeConfig(t)
			config.Encapsulation, config.Signs = encapsulation, true
			compareEdges(t, w, config, uint64(100+seed), *frames/8+1,
				func(e *twoEdges) { e.sign(t, key) })
		}
	}
}

// TestHMACHostAgreesWithModel: the same generated frames, under each rule: headers of all keys,
// forms and lengths, sound and spoilt.
func TestHMACHostAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for _, rule := range []HMACRule{HMACPresent, HMACSRH, HMACAll} {
		w.run(t, fmt.Sprintf("rule %d", rule),
			func(t *testing.T) { compareVerification(t, w, rule, *frames/3+1) })
	}
}

func compareVerification(t *testing.T, w *world, rule HMACRule, count int) {
	hosts := newTwoHosts(t, w, map[flow.Tuple]model.Socket{}, func(c *HostConfig) { c.HMAC = rule })
	hosts.accept(t, hmacKeysAccepted(t))
	generator := hostGenerator(t, uint64(rule), nil, hosts.program.config)
	run := newRunner(hosts.program.programs["host"], w.near)
	reasons, passed := tally{}, 0
	for i := range count {
		frame := generator.NextHost()
		if len(frame) < 14 {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		want := hosts.model.Process(uint32(w.near), 0, frame)
		verdict, after := run.run(t, frame)
		reasons.add(want)
		if want.SID.IsValid() && want.Verdict != model.Drop && bytes.Contains(frame,
			[]byte{srv6.TLVHMAC, 38}) {
			passed++
		}
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("frame %d", i)
		}
	}
	if passed < count/20 {
		t.Errorf("only %d of %d frames were let through with an HMAC: the generator misses", passed,
			count)
	}
	for _, reason := range []model.Reason{model.ReasonHMACKey, model.ReasonHMACWrong,
		model.ReasonBadSRH, model.ReasonHMACMissing} {
		if reasons[reason.String()] < uint64(count)/200 && (reason != model.ReasonHMACMissing ||
			rule != HMACPresent) {
			t.Errorf("only %d of %d frames were dropped as %s: the generator misses",
				reasons[reason.String()], count, reason)
		}
	}
	drops, err := hosts.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
}

// TestHMACOfVocabulary: what the edge signs is what package srv6 would have written, and what it
// verifies; again when the HMAC is remembered, and with another key under the same id.
func TestHMACOfVocabulary(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for encapsulation, least := range map[Encapsulation]int{SRH: 1, SRHReduced: 1} {
		config := edgeConfig(t)
		config.Encapsulation, config.Signs = encapsulation, true
		edges := newTwoEdges(t, w, config)
		run := newRunner(edges.program.programs[External], w.near)
		for _, secret := range []string{"the first one", "the second one", "the first one"} {
			key := hmacKeyOfText(t, 7, srv6.HMACStandard, secret)
			edges.sign(t, key)
			lengths := map[int]int{}
			for port := range uint16(100) {
				frame := tcpFrame(t, tupleOf(clientV6, hostVIPv6, 1000+port%50),
					&layers.TCP{ACK: true})
				if verdict, after := run.run(t, frame); verdict == xdpTransmit ||
					verdict == xdpRedirect {
					lengths[verifySigned(t, after, key)]++
				}
			}
			if len(lengths) < least {
				t.Errorf("encapsulation %d: lists of %v segments", encapsulation, lengths)
			}
		}
	}
}

// verifySigned verifies a frame without VLAN tags, also at all segments to come, and returns how
// many there are in the list.
func verifySigned(t *testing.T, frame []byte, key srv6.HMACKey) int {
	t.Helper()
	header, _, err := srv6.ParseSRH(frame[ipv6HeaderEnd:])
	must(t, err)
	source, destination := netip.AddrFrom16([16]byte(frame[22:])),
		netip.AddrFrom16([16]byte(frame[38:]))
	keys := func(id uint32) (srv6.HMACKey, bool) { return key, id == key.ID }
	if err := srv6.VerifyHMAC(source, destination, header, keys); err != nil {
		t.Fatalf("%v: %x", err, frame)
	}
	for header.SegmentsLeft > 0 {
		header.SegmentsLeft--
		if err := srv6.VerifyHMAC(source, header.Segments[header.SegmentsLeft], header,
			keys); err != nil {
			t.Fatalf("%d segments left: %v: %x", header.SegmentsLeft, err, frame)
		}
	}
	return len(header.Segments)
}

// TestHMACKeysInMaps: keys come and go as they are set, and nobody sees them.
func TestHMACKeysInMaps(t *testing.T) {
	w := newWorld(t)
	config := hostConfig(t)
	config.HMAC = HMACSRH
	h, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(h.Close)
	keys := hmacKeysAccepted(t)
	ids := func() (ids []uint32) {
		t.Helper()
		var key hmacKey
		var id uint32
		for entries := h.maps["hmac_keys"].Iterate(); entries.Next(&id, &key); {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	for _, test := range []struct {
		keys []srv6.HMACKey
		want []uint32
	}{{keys, []uint32{7, 0xdeadbeef}}, {keys[1:], []uint32{0xdeadbeef}},
		{keys, []uint32{7, 0xdeadbeef}}, {nil, nil}} {
		must(t, h.SetHMACKeys(test.keys))
		if got := ids(); !slices.Equal(got, test.want) {
			t.Errorf("keys %d in the map, want %d", got, test.want)
		}
	}
	// As many as a node file can have, and all replaced at once.
	for _, first := range []uint32{100, 200} {
		many := make([]srv6.HMACKey, 64)
		for i := range many {
			many[i] = hmacKeyOfText(t, first+uint32(i), srv6.HMACStandard, "a secret of many")
		}
		must(t, h.SetHMACKeys(many))
	}
	for _, name := range []string{"hmac_keys", "hmac_scratches"} {
		if _, err := h.Dump(name, 10); !errors.Is(err, ErrNoMap) {
			t.Errorf("%s can be dumped: %v", name, err)
		}
	}
	shown := fmt.Sprintf("%v %+v", keys, config)
	if bytes.Contains([]byte(shown), []byte("a secret of")) {
		t.Errorf("the keys are shown: %s", shown)
	}
}
