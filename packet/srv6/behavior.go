package srv6

import (
	"fmt"
	"strings"
)

// Behavior is an SRv6 endpoint behaviour by its code point (IANA, "SRv6 Endpoint Behaviors", RFC
// 8986 section 10.2). Code points from 32768 to 34815 are for private use, among them Sextant's
// own.
type Behavior uint16

// Behaviours of RFC 8986, without flavours, and of RFC 9800.
const (
	End         Behavior = 1  // next segment
	EndX        Behavior = 5  // next segment by way of an adjacency
	EndT        Behavior = 9  // next segment by way of a table
	EndB6Encaps Behavior = 14 // bound to an SR policy
	EndDX6      Behavior = 16 // decapsulate, IPv6 to an adjacency
	EndDX4      Behavior = 17 // decapsulate, IPv4 to an adjacency
	EndDT6      Behavior = 18 // decapsulate, look IPv6 up
	EndDT4      Behavior = 19 // decapsulate, look IPv4 up
	EndDT46     Behavior = 20 // decapsulate, look either up
	EndNextCSID Behavior = 43 // End with the NEXT-C-SID flavour
)

// EndOFFER is Sextant's own: the packet is offered to this host, which takes it (decapsulates and
// delivers it) or passes it on to the next SID. The last one takes it.
const EndOFFER Behavior = 32768

// VRF-shadowing (Nakamura et al., "Exploiting SRv6"; private use here). The conditional ends, its
// Algorithm 1, decapsulate like those without COND, but send a stray (a TCP packet that opens
// nothing, of a connection that is not here) to a backup SID. That is an edge's End.SHADOW, which
// looks the inner packet up in its previous table.
const (
	EndDT4COND  Behavior = 32769
	EndDT6COND  Behavior = 32770
	EndDT46COND Behavior = 32771
	EndSHADOW   Behavior = 32772
)

// EndMERGE is Sextant's own: it decapsulates the first copy of each numbered packet and drops the
// others. Packets without a number are decapsulated as by End.DT46.
const EndMERGE Behavior = 32773

// opaque is what a router says that does not tell the behaviour of its SID (RFC 9252).
const opaque Behavior = 65535

// flavored is a run of code points: one behaviour with each of some sets of flavours.
type flavored struct {
	first   Behavior
	name    string
	flavors []string
}

// The order in which the registry lists flavours: as RFC 8986 assigned them at first, those with
// USD that followed, and all of them as RFC 9800 assigned them with NEXT-C-SID.
var (
	plainFlavors = []string{"", " with PSP", " with USP", " with PSP & USP"}
	usdFlavors   = []string{" with USD", " with PSP & USD", " with USP & USD",
		" with PSP, USP & USD"}
	nextFlavors = []string{
		" with NEXT-CSID", " with NEXT-CSID & PSP", " with NEXT-CSID & USP",
		" with NEXT-CSID, PSP & USP",
		" with NEXT-CSID & USD", " with NEXT-CSID, PSP & USD", " with NEXT-CSID, USP & USD",
		" with NEXT-CSID, PSP, USP & USD",
	}
)

// behaviorNames holds the registry's names.
var behaviorNames = nameBehaviors([]flavored{
	{End, "End", plainFlavors}, {28, "End", usdFlavors}, {EndNextCSID, "End", nextFlavors},
	{EndX, "End.X", plainFlavors}, {32, "End.X", usdFlavors}, {52, "End.X", nextFlavors},
	{EndT, "End.T", plainFlavors}, {36, "End.T", usdFlavors}, {85, "End.T", nextFlavors},
}, map[Behavior]string{
	EndB6Encaps: "End.B6.Encaps", 15: "End.BM", 27: "End.B6.Encaps.Red",
	EndDX6: "End.DX6", EndDX4: "End.DX4", EndDT6: "End.DT6", EndDT4: "End.DT4", EndDT46: "End.DT46",
	21: "End.DX2", 22: "End.DX2V", 23: "End.DT2U", 24: "End.DT2M",
	60: "End.DX6 with NEXT-CSID", 61: "End.DX4 with NEXT-CSID", 62: "End.DT6 with NEXT-CSID",
	63: "End.DT4 with NEXT-CSID", 64: "End.DT46 with NEXT-CSID", 65: "End.DX2 with NEXT-CSID",
	66: "End.DX2V with NEXT-CSID", 67: "End.DT2U with NEXT-CSID", 68: "End.DT2M with NEXT-CSID",
	93: "End.B6.Encaps with NEXT-CSID", 94: "End.B6.Encaps.Red with NEXT-CSID",
	EndOFFER: "End.OFFER", EndDT4COND: "End.DT4.COND", EndDT6COND: "End.DT6.COND",
	EndDT46COND: "End.DT46.COND",
	EndSHADOW:   "End.SHADOW", EndMERGE: "End.MERGE", opaque: "Opaque",
})

func nameBehaviors(runs []flavored, names map[Behavior]string) map[Behavior]string {
	for _, run := range runs {
		for i, flavor := range run.flavors {
			names[run.first+Behavior(i)] = run.name + flavor
		}
	}
	return names
}

// String returns the registry's name, such as "End.DT46", or the code point if it has none.
func (b Behavior) String() string {
	if name, ok := behaviorNames[b]; ok {
		return name
	}
	return fmt.Sprintf("Behavior(%d)", uint16(b))
}

// ParseBehavior reads a name as String writes it. Upper and lower case are the same.
func ParseBehavior(text string) (Behavior, error) {
	for b, name := range behaviorNames {
		if strings.EqualFold(text, name) {
			return b, nil
		}
	}
	return 0, fmt.Errorf("unknown SRv6 behaviour %q; use a name of the IANA registry such as %s, "+
		"or %s", text, EndDT46, EndOFFER)
}
