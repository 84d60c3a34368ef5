package bgp_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/lb/discovery"
	"sextant/routing/bgp"
)

// wire is a BGP session of which the test writes every byte.
type wire struct {
	t    *testing.T
	conn net.Conn
}

// dialSpeaker is the nth neighbor's side of a session to a speaker, which waits for it.
func dialSpeaker(t *testing.T, edge *bgp.Speaker, n, speaker int) wire {
	t.Helper()
	await(t, edge, "it waits for the neighbor",
		func() bool { return peerOf(t, edge, n).State == "active" })
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(loopback(n), 0)),
		Timeout: patience}
	conn, err := dialer.Dial("tcp", netip.AddrPortFrom(loopback(speaker), port).String())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	w := wire{t, conn}
	open, err := gobgp.NewBGPOpenMessage(64512, 90, loopback(n), []gobgp.OptionParameterInterface{
		gobgp.NewOptionParameterCapability([]gobgp.ParameterCapabilityInterface{
			gobgp.NewCapMultiProtocol(gobgp.RF_IPv4_VPN),
			gobgp.NewCapMultiProtocol(gobgp.RF_IPv6_VPN), gobgp.NewCapFourOctetASNumber(64512),
		})})
	must(t, err)
	w.send(open)
	w.send(gobgp.NewBGPKeepAliveMessage())
	go io.Copy(io.Discard, conn)
	await(t, edge, "the session is up", func() bool { return peerOf(t, edge, n).Up() })
	return w
}

func (w wire) send(m *gobgp.BGPMessage) {
	w.t.Helper()
	octets, err := m.Serialize()
	must(w.t, err)
	w.write(octets)
}

func (w wire) write(octets []byte) {
	w.t.Helper()
	_, err := w.conn.Write(octets)
	must(w.t, err)
}

// The value of a Prefix-SID attribute: an L3 service TLV with one SID information, and its
// structure.
const (
	goodSID = "05002200" + "01001e00" + "fcbbbb00000700000000000000000000" + "00" + "8000" +
		"00" + "0100062010005000" + "00"
	plainSID = "05001900" + "01001500" + "fcbbbb00000700000000000000000000" + "00" + "0014" +
		"00"
	strangeSID = "05002200" + "01001e00" + "fcbbbb00000700000000000000000000" + "00" + "9000" +
		"00" + "0100062010005000" + "00"
	tooLongSID = "05002200" + "01001e00" + "fcbbbb00000700000000000000000000" + "00" + "8000" +
		"00" + "010006ff10005000" + "00"
	badTransport = "05002200" + "01001e00" + "fcbbbb00000700000000000000000000" + "00" + "0014" +
		"00" + "0100062010100010" + "50"
	shortSID     = "05001800" + "01001400" + "fcbbbb00000700000000000000000000" + "00" + "00"
	overflow     = "05001900"
	noReserved   = "050000"
	badStructure = "05002100" + "01001d00" + "fcbbbb00000700000000000000000000" + "00" + "8000" +
		"00" + "0100052010005000"
)

// update is a route to a VIP with the given octets as its Prefix-SID attribute.
func update(t *testing.T, vip string, sid string, weight float32, extra ...byte) []byte {
	t.Helper()
	rd, err := gobgp.ParseRouteDistinguisher("192.0.2.9:1")
	must(t, err)
	target, err := gobgp.ParseRouteTarget("64512:1")
	must(t, err)
	prefix := netip.MustParseAddr(vip)
	nlri, err := gobgp.NewLabeledVPNIPAddrPrefix(netip.PrefixFrom(prefix, prefix.BitLen()),
		*gobgp.NewMPLSLabelStack(3), rd)
	must(t, err)
	reach, err := gobgp.NewPathAttributeMpReachNLRI(gobgp.RF_IPv6_VPN,
		[]gobgp.PathNLRI{{NLRI: nlri}}, netip.MustParseAddr("2001:db8::9"))
	must(t, err)
	attributes := []gobgp.PathAttributeInterface{
		gobgp.NewPathAttributeOrigin(0), gobgp.NewPathAttributeAsPath(nil),
		gobgp.NewPathAttributeLocalPref(100), reach,
		gobgp.NewPathAttributeExtendedCommunities([]gobgp.ExtendedCommunityInterface{target,
			gobgp.NewLinkBandwidthExtended(64512, weight)}),
	}
	octets, err := gobgp.NewBGPUpdateMessage(nil, attributes, nil).Serialize()
	must(t, err)
	value, err := hex.DecodeString(sid)
	must(t, err)
	octets = append(octets, extra...)
	if sid != "" {
		octets = append(append(octets, 0xc0, 40, byte(len(value))), value...)
	}
	return resized(octets)
}

// resized writes the lengths of an update that grew at its end.
func resized(octets []byte) []byte {
	total, attributes := len(octets), len(octets)-gobgp.BGP_HEADER_LENGTH-4
	octets[16], octets[17] = byte(total>>8), byte(total)
	octets[21], octets[22] = byte(attributes>>8), byte(attributes)
	return octets
}

// Whatever a neighbor sends, the session stands as long as the message can be told from the next
// one, the route is counted as ignored, and good routes are learned before and after.
func TestHostileNeighbor(t *testing.T) {
	edge := open(t, bgp.Options{BGP: settings(20, 21)})
	w := dialSpeaker(t, edge, 21, 20)
	nan := float32(math.NaN())
	for _, octets := range [][]byte{
		update(t, "2001:db8::1", goodSID, 5),
		update(t, "2001:db8::2", "", 1),
		update(t, "2001:db8::3", strangeSID, 1),
		update(t, "2001:db8::4", tooLongSID, 1),
		update(t, "2001:db8::5", badTransport, 1),
		update(t, "2001:db8::6", shortSID, 1),
		update(t, "2001:db8::7", overflow, 1),
		update(t, "2001:db8::8", noReserved, 1),
		update(t, "2001:db8::9", badStructure, 1),
		update(t, "2001:db8::a", goodSID, nan),
		update(t, "2001:db8::b", goodSID, -1),
		update(t, "2001:db8::c", plainSID, 1e9),
		// Communities of 3 octets: the route is withdrawn (RFC 7606 section 7.8).
		update(t, "2001:db8::d", goodSID, 1, 0xc0, 8, 3, 1, 2, 3),
		update(t, "2001:db8::e", goodSID, 6),
	} {
		w.write(octets)
	}
	await(t, edge, "the last good route", func() bool {
		for _, r := range routesOf(t, edge) {
			if r.Prefix.Addr() == netip.MustParseAddr("2001:db8::e") {
				return true
			}
		}
		return false
	})
	if !peerOf(t, edge, 21).Up() {
		t.Error("the session is down")
	}
	table, err := edge.Routes()
	must(t, err)
	weights := map[string]int{}
	for _, r := range table.Routes {
		weights[r.Prefix.Addr().String()] = r.Weight
	}
	if diff := cmp.Diff(map[string]int{"2001:db8::1": 5, "2001:db8::c": 65535, "2001:db8::e": 6},
		weights); diff != "" {
		t.Errorf("weights of learned routes (-want +got):\n%s", diff)
	}
	reasons := map[string]discovery.Reason{}
	for _, r := range table.Refused {
		reasons[r.Route.Prefix.Addr().String()] = r.Reason
	}
	want := map[string]discovery.Reason{
		"2001:db8::2": "no_sid", "2001:db8::3": "unknown_argument", "2001:db8::4": "malformed_sid",
		"2001:db8::5": "malformed_sid",
		"2001:db8::6": "no_sid", "2001:db8::7": "no_sid", "2001:db8::8": "no_sid",
		"2001:db8::9": "no_sid",
		"2001:db8::a": "weight", "2001:db8::b": "weight",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("ignored routes (-want +got):\n%s", diff)
	}
	if f := edge.Faults(); f["attribute_discard"] != 3 || f["treat_as_withdraw"] != 1 ||
		f["session_reset"] != 0 {
		t.Errorf("faults %v, want 3 attributes discarded and 1 route withdrawn", f)
	}
	w.write(bytes.Repeat([]byte{0x55}, 64))
	await(t, edge, "a reset", func() bool {
		return edge.Faults()["session_reset"] == 1 &&
			!peerOf(t, edge, 21).Up()
	})
	again := dialSpeaker(t, edge, 21, 20)
	again.write(update(t, "2001:db8::f", goodSID, 7))
	await(t, edge, "the session again", func() bool { return len(routesOf(t, edge)) == 1 })
}
