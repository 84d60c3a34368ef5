package packettest

import (
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// Kinds returns a packet of each kind that is forwarded, made from a TCP packet of each family. UDP
// goes to the ports 53 (IPv4) and 4433 (IPv6).
func Kinds(ipv4, ipv6 Packet) map[string]Packet {
	all := map[string]Packet{"IPv4": ipv4, "IPv6": ipv6}
	p := ipv4
	p.IPv4Options = []layers.IPv4Option{
		{OptionType: 7, OptionLength: 7, OptionData: []byte{4, 0, 0, 0, 0}}, {OptionType: 1},
	}
	p.Payload, p.TrafficClass = []byte("GET / HTTP/1.1\r\n\r\n"), 0xb9
	all["IPv4 with options"] = p
	p = ipv4
	for range 40 {
		p.IPv4Options = append(p.IPv4Options, layers.IPv4Option{OptionType: 1})
	}
	all["IPv4 with 40 bytes of options"] = p
	p = ipv6.Behind(layers.IPProtocolIPv6HopByHop,
		Extension(layers.IPProtocolIPv6Destination, 1), Extension(layers.IPProtocolIPv6Routing, 0),
		Routing(layers.IPProtocolIPv6Fragment, 0, 0, 1), Fragment(layers.IPProtocolTCP, 0))
	p.Payload, p.TrafficClass, p.FlowLabel = []byte("odd"), 0x2a, 0xabcde
	all["IPv6 with extension headers"] = p
	all["IPv4 with TCP options"] = ipv4.With(Option(8, 1, 2, 3, 4, 5, 6, 7, 8))
	p = ipv6.Of(layers.IPProtocolUDP, make([]byte, 1200)...)
	p.DstPort = 4433
	all["UDP over IPv6"] = p
	p = ipv4.Of(layers.IPProtocolUDP, 1)
	p.DstPort = 53
	all["UDP over IPv4"] = p
	return all
}

// MSSCase are the options of a SYN before and after its maximum segment size was limited.
type MSSCase struct {
	Name          string
	Before, After []layers.TCPOption
}

// MSSCases returns SYNs with all kinds of options, below, at and above a limit.
func MSSCases(limit uint16) []MSSCase {
	options := func(all ...layers.TCPOption) []layers.TCPOption { return all }
	var (
		nop        = layers.TCPOption{OptionType: 1}
		end        = layers.TCPOption{OptionType: 0}
		sack       = Option(4)
		scale      = Option(3, 7)
		timestamps = Option(8, 1, 2, 3, 4, 5, 6, 7, 8)
		long       = Option(254, make([]byte, 34)...)
		spoiled    = Option(2, 0xff) // an MSS of a wrong length
	)
	return []MSSCase{
		{Name: "no options"},
		{"higher", options(MSS(1460)), options(MSS(limit))},
		{"highest", options(MSS(65535)), options(MSS(limit))},
		{"higher by one", options(MSS(limit + 1)), options(MSS(limit))},
		{"the limit", options(MSS(limit)), options(MSS(limit))},
		{"lower by one", options(MSS(limit - 1)), options(MSS(limit - 1))},
		{"lower", options(MSS(536)), options(MSS(536))},
		{"absent", options(sack, scale), options(sack, scale)},
		{"behind others", options(sack, timestamps, MSS(1460), scale),
			options(sack, timestamps, MSS(limit), scale)},
		{"at an odd offset", options(nop, MSS(1460), scale), options(nop, MSS(limit), scale)},
		{"the last four bytes", options(long, MSS(9000)), options(long, MSS(limit))},
		{"the first of two", options(MSS(1460), MSS(1460)), options(MSS(limit), MSS(1460))},
		{"behind one of a wrong length", options(spoiled, MSS(1460)), options(spoiled, MSS(limit))},
		{"behind the end of the options", options(end, MSS(1460)), options(end, MSS(1460))},
	}
}

// MSSMalformed returns SYNs with options which cannot be right, so that the search for the MSS
// ends, and nothing is written.
func MSSMalformed(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"length 0":                 {3, 0, 0, 0, 2, 4, 0xff, 0xff},
		"length 1":                 {3, 1, 1, 1, 2, 4, 0xff, 0xff},
		"length behind the header": {3, 9, 0, 0, 2, 4, 0xff, 0xff},
		"kind without a length":    {1, 1, 1, 1, 1, 1, 1, 2},
		"MSS cut off":              {1, 1, 1, 1, 1, 2, 4, 0xff},
		"MSS of length 0":          {2, 0, 0xff, 0xff},
		"MSS of length 3":          {2, 3, 0xff, 1},
		"MSS of length 5":          {2, 5, 0xff, 0xff, 0xff, 0, 0, 0},
		"MSS as data of another":   {254, 6, 2, 4, 0xff, 0xff, 1, 1},
	}
	for name, options := range all {
		ip := Web6("S").Bytes(t)
		ip[40+12] = byte(5+len(options)/4) << 4
		ip[5] += byte(len(options))
		all[name] = append(ip, options...)
	}
	return all
}

// ECN is the ECN field that leaves a tunnel (RFC 6040 figure 4), by the inner field and then the
// outer one: Not-ECT, ECT(1), ECT(0), CE. -1 drops the packet.
var ECN = [4][4]int{
	{0, 0, 0, -1},
	{1, 1, 1, 3},
	{2, 1, 2, 3},
	{3, 3, 3, 3},
}
