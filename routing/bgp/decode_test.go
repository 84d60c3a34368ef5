package bgp_test

import (
	"encoding/hex"
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

var speech = settings(1)

// decode reads a VPN route with these octets as the value of its Prefix-SID attribute, and this
// label.
func decode(t testing.TB, octets []byte, label uint32) (discovery.Route, discovery.Reason, bool) {
	t.Helper()
	rd, err := gobgp.ParseRouteDistinguisher("192.0.2.9:1")
	if err != nil {
		t.Fatal(err)
	}
	target, err := gobgp.ParseRouteTarget("64512:1")
	if err != nil {
		t.Fatal(err)
	}
	nlri, err := gobgp.NewLabeledVPNIPAddrPrefix(netip.MustParsePrefix("192.0.2.80/32"),
		*gobgp.NewMPLSLabelStack(label), rd)
	if err != nil {
		t.Fatal(err)
	}
	path := &apiutil.Path{Nlri: nlri, Attrs: []gobgp.PathAttributeInterface{
		gobgp.NewPathAttributeExtendedCommunities([]gobgp.ExtendedCommunityInterface{target})}}
	attribute := &gobgp.PathAttributePrefixSID{}
	if err := attribute.DecodeFromBytes(append([]byte{0xd0, 40, byte(len(octets) >> 8),
		byte(len(octets))}, octets...)); err == nil {
		path.Attrs = append(path.Attrs, attribute)
	}
	return bgp.Decode(t, speech, path)
}

// Octets that other implementations send, or are known to be wrong in, from RFC 9252 and from
// public test suites.
func TestDecodeSID(t *testing.T) {
	for name, test := range map[string]struct {
		octets   string
		label    uint32
		sid      string
		behavior srv6.Behavior
		reason   discovery.Reason
	}{
		"End.DT4, 16 bits in the label": {
			"0500220001001e002001000000050003000000000000000000001300010006281810001040",
			0x12340 >> 0, "2001:0:5:3:1234::", srv6.EndDT4, ""},
		"the whole SID, opaque": {"050019000100150020010db8000100010000000000000001" + "00ffff00",
			3, "2001:db8:1:1::1", 65535, ""},
		"the first of two SIDs": {
			"0500430001001e002001000000050003000000000000000100001300010006281810000000" +
				"01001e002001000000050003000000000000000200001300010006301810001040", 3,
			"2001:0:5:3::1", srv6.EndDT4, ""},
		"the first of two services": {"0500190001001500fcbbbbbb0001e0000000000000000000000040000500190001001500fcbbbbbb0001e001000000000000000000003e00",
			3, "fcbb:bbbb:1:e000::", 64, ""},
		"label index alone": {"0100070000000000000203000800000a1bfe00000a", 3, "", 0,
			"no_sid"},
		"service without its content": {"05001900", 3, "", 0, "no_sid"},
		"SID information too short": {"0500180001001400fcbbbbbb0001e0000000000000000000000040",
			3, "", 0, "no_sid"},
		"structure of 5 octets":         {"0500210001001d00fcbbbbbb0001e0000000000000000000000040000100052020100000", 3, "", 0, "no_sid"},
		"unknown sub-TLV only":          {"05000700ff0003010203", 3, "", 0, "no_sid"},
		"transposition beyond the SID":  {"0500220001001e00fcbbbbbb0001e0000000000000000000000040000100062020100015" + "00", 3, "", 64, "malformed_sid"},
		"parts longer than an address":  {"0500220001001e00fcbbbbbb0001e00000000000000000000000400001000640402010" + "0000", 3, "", 64, "malformed_sid"},
		"an offset without a length":    {"0500220001001e00fcbbbbbb0001e0000000000000000000000040000100062010100000" + "10", 3, "", 64, "malformed_sid"},
		"argument of an unknown kind":   {"0500220001001e00fcbbbb0000070000000000000000000000900000010006201000" + "500000", 3, "", 0x9000, "unknown_argument"},
		"argument of one of ours":       {"0500220001001e00fcbbbb0000070000000000000000000000800000010006201000" + "500000", 3, "fcbb:bb00:7::", srv6.EndOFFER, ""},
		"no argument, unknown and fine": {"0500220001001e00fcbbbb0000070000000000000000000000900000010006201000" + "000000", 3, "fcbb:bb00:7::", 0x9000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			octets, err := hex.DecodeString(test.octets)
			must(t, err)
			r, reason, ours := decode(t, octets, test.label)
			if !ours {
				t.Error("a route with our route target is not ours")
			}
			want := netip.Addr{}
			if test.sid != "" {
				want = netip.MustParseAddr(test.sid)
			}
			if r.SID != want || r.Behavior != test.behavior || reason != test.reason {
				t.Errorf("SID %s, behaviour %d, reason %q; want %s, %d, %q", r.SID, r.Behavior,
					reason, want, test.behavior, test.reason)
			}
		})
	}
}

// What is announced is what is learned, whatever the SID's length.
func TestAnnouncedIsLearned(t *testing.T) {
	for _, text := range []string{"fcbb:bb00:1::/48", "fcbb:bb00:1:d46::/64", "fcbb:bb00:1::5/128",
		"2001:db8::/40"} {
		for _, vip := range []string{"192.0.2.80", "2001:db8:80::80"} {
			sid := config.SID{Prefix: netip.MustParsePrefix(text), Behavior: srv6.EndDT46}
			path := bgp.Encode(t, speech, bgp.Announcement{VIP: netip.MustParseAddr(vip), SID: sid,
				Weight: 65535, Draining: true,
				Services: []discovery.Port{{Protocol: config.UDP, Port: 53}}})
			octets, err := path.Attrs[2].Serialize()
			must(t, err)
			again := &gobgp.PathAttributePrefixSID{}
			must(t, again.DecodeFromBytes(octets))
			path.Attrs[2] = again
			r, reason, ours := bgp.Decode(t, speech, path)
			if r.SID != sid.Prefix.Addr() || r.Behavior != srv6.EndDT46 || r.Weight != 65535 ||
				!r.Draining || len(r.Services) != 1 || reason != "" || !ours {
				t.Errorf("%s at %s became %+v, %q, ours %t", vip, text, r, reason, ours)
			}
		}
	}
}

// Only behaviours that go on in a carrier have an argument: what RFC 8986 says of End.DT6, End.DT4
// and End.DT46 needs none, and RFC 9252 wants the length 0 then.
func TestArguments(t *testing.T) {
	for behavior, want := range map[srv6.Behavior]uint8{srv6.EndDT6: 0, srv6.EndDT4: 0,
		srv6.EndDT46: 0, srv6.EndDT46COND: 64, srv6.EndOFFER: 64} {
		r, reason, _ := bgp.Decode(t, speech, bgp.Encode(t, speech, bgp.Announcement{
			VIP: netip.MustParseAddr("192.0.2.80"), Weight: 1,
			SID: config.SID{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d46::/64"),
				Behavior: behavior}}))
		if diff := cmp.Diff(discovery.Structure{Block: 32, Node: 16, Function: 16,
			Argument: want}, r.Structure); diff != "" || reason != "" {
			t.Errorf("%s, %q (-want +got):\n%s", behavior, reason, diff)
		}
	}
}

// Routes of another cluster are none of our business, and not even counted.
func TestOtherRouteTarget(t *testing.T) {
	path := bgp.Encode(t, speech, offer(1, "192.0.2.80"))
	other := *speech
	for _, target := range []string{"64512:2", "64513:1", "192.0.2.1:1", "4200000000:1"} {
		if other.RouteTarget = target; true {
			if _, _, ours := bgp.Decode(t, &other, path); ours {
				t.Errorf("a route with target %s is ours, who want %s", speech.RouteTarget, target)
			}
		}
	}
}

func FuzzDecodeSID(f *testing.F) {
	for _, text := range []string{goodSID, plainSID, strangeSID, tooLongSID, badTransport, shortSID,
		overflow, noReserved, badStructure} {
		octets, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(octets, uint32(0x12340))
	}
	f.Fuzz(func(t *testing.T, octets []byte, label uint32) {
		if len(octets) > 60000 {
			return
		}
		r, reason, _ := decode(t, octets, label&0xfffff)
		if (reason == "") != r.SID.IsValid() {
			t.Errorf("SID %s with reason %q", r.SID, reason)
		}
	})
}

// What can't be meant is refused with its reason: it must not become the most, or all.
func TestDecodeRefusesWhatCannotBeMeant(t *testing.T) {
	target, err := gobgp.ParseRouteTarget(speech.RouteTarget)
	must(t, err)
	bandwidth := func(b float32) gobgp.PathAttributeInterface {
		return gobgp.NewPathAttributeExtendedCommunities([]gobgp.ExtendedCommunityInterface{
			target, gobgp.NewLinkBandwidthExtended(64512, b),
		})
	}
	services := func(port uint32) gobgp.PathAttributeInterface {
		return gobgp.NewPathAttributeLargeCommunities([]*gobgp.LargeCommunity{
			{ASN: uint32(speech.ASN), LocalData1: 6, LocalData2: 443},
			{ASN: uint32(speech.ASN), LocalData1: 6, LocalData2: port},
		})
	}
	inf := float32(math.Inf(1))
	for name, test := range map[string]struct {
		attribute gobgp.PathAttributeInterface
		want      discovery.Reason
		weight    int
	}{
		"a bandwidth":            {bandwidth(3), "", 3},
		"an infinite bandwidth":  {bandwidth(inf), "weight", 0},
		"one below all":          {bandwidth(-inf), "weight", 0},
		"no number":              {bandwidth(float32(math.NaN())), "weight", 0},
		"the greatest bandwidth": {bandwidth(math.MaxFloat32), "", 65535},
		"two services":           {services(80), "", 1},
		"a port that is none":    {services(65536), "service", 0},
	} {
		path := bgp.Encode(t, speech, offer(1, "192.0.2.80"))
		path.Attrs = append(path.Attrs, test.attribute)
		r, reason, ours := bgp.Decode(t, speech, path)
		if reason != test.want || !ours || (reason == "" && r.Weight != test.weight) {
			t.Errorf("%s: reason %q, ours %v, weight %d; want %q, %d", name, reason, ours, r.Weight,
				test.want, test.weight)
		}
	}
}
