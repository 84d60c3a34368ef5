package rtnetlink_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/linux/rtnetlink"
)

var compareAddresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func drawAddress(t *rapid.T) netip.Addr {
	return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
}

func drawHop(t *rapid.T, weight int) rtnetlink.Hop {
	return rtnetlink.Hop{
		Weight:   rapid.IntRange(1, weight).Draw(t, "weight"),
		Mode:     rapid.SampledFrom([]rtnetlink.Mode{1, 3}).Draw(t, "mode"),
		Segments: rapid.SliceOfN(rapid.Custom(drawAddress), 1, 5).Draw(t, "segments"),
	}
}

func drawMessage(t *rapid.T) rtnetlink.Message {
	m := rtnetlink.Message{Kind: rapid.SampledFrom([]rtnetlink.Kind{
		rtnetlink.NewRoute, rtnetlink.DelRoute, rtnetlink.NewNextHop, rtnetlink.DelNextHop,
	}).Draw(t, "kind")}
	if m.Kind == rtnetlink.NewRoute || m.Kind == rtnetlink.DelRoute {
		address := drawAddress(t)
		if rapid.Bool().Draw(t, "ipv4") {
			address = netip.AddrFrom4([4]byte(address.AsSlice()[:4]))
		}
		m.Route = rtnetlink.Route{
			Table: rapid.Uint32Min(1).Draw(t, "table"), Metric: rapid.Uint32().Draw(t, "metric"),
			Protocol: rapid.Byte().Draw(t, "protocol"),
			Prefix: netip.PrefixFrom(address, rapid.IntRange(0, address.BitLen()).Draw(t,
				"bits")).Masked(),
		}
		if rapid.Bool().Draw(t, "object") {
			m.Route.NextHopID = rapid.Uint32Min(1).Draw(t, "next hop")
		} else {
			for range rapid.IntRange(1, 4).Draw(t, "hops") {
				m.Route.Hops = append(m.Route.Hops, drawHop(t, 256))
			}
		}
		return m
	}
	m.NextHop.ID, m.NextHop.Hop.Weight = rapid.Uint32Min(1).Draw(t, "id"), 1
	switch {
	case m.Kind == rtnetlink.DelNextHop:
		return m
	case rapid.Bool().Draw(t, "group"):
		for range rapid.IntRange(1, 4).Draw(t, "legs") {
			m.NextHop.Group = append(m.NextHop.Group,
				rtnetlink.Leg{ID: rapid.Uint32().Draw(t, "leg"),
					Weight: rapid.IntRange(1, 65536).Draw(t, "weight")})
		}
		m.NextHop.Buckets = rapid.IntRange(0, 65535).Draw(t, "buckets")
	default:
		m.NextHop.Hop = drawHop(t, 1)
	}
	m.NextHop.Protocol = rapid.Byte().Draw(t, "protocol")
	return m
}

// What is written is read as it was.
func TestAppendThenDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		var err error
		want := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 4).Draw(t, "messages")
		for i, m := range want {
			if b, err = m.Append(b, uint32(i), 0); err != nil {
				t.Fatal(err)
			}
		}
		var decoder rtnetlink.Decoder
		for i, m := range want {
			var h rtnetlink.Header
			var body []byte
			if h, body, b, err = rtnetlink.Next(b); err != nil {
				t.Fatal(err)
			}
			got, ok, err := decoder.Decode(h, body)
			if err != nil || !ok || h.Seq != uint32(i) {
				t.Fatalf("message %d: number %d, ok %v, error %v", i, h.Seq, ok, err)
			}
			if diff := cmp.Diff(m, got, compareAddresses, comparePrefixes); diff != "" {
				t.Fatalf("-written +read:\n%s", diff)
			}
		}
		if len(b) > 0 {
			t.Fatalf("%d bytes are left", len(b))
		}
	})
}

// recorded is what zebra 8.4.4 said when it connected, and when bgpd had imported routes of an SRv6
// L3VPN.
func recorded(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/frr-8.4.4.bin")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// messages reads frames to their end.
func messages(r io.Reader) (list []rtnetlink.Message, err error) {
	var decoder rtnetlink.Decoder
	var buffer []byte
	for {
		frame, err := rtnetlink.ReadFrame(r, &buffer)
		if err == io.EOF { //nolint:errorlint // bare between frames
			return list, nil
		}
		if err != nil {
			return list, err
		}
		for len(frame) > 0 {
			h, body, rest, err := rtnetlink.Next(frame)
			if err != nil {
				return list, err
			}
			frame = rest
			m, ok, err := decoder.Decode(h, body)
			if err != nil {
				return list, err
			}
			if ok {
				list = append(list, m)
			}
		}
	}
}

func TestZebra(t *testing.T) {
	list, err := messages(bytes.NewReader(recorded(t)))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, m := range list {
		if r := m.Route; r.NextHopID == 45 {
			fmt.Fprintf(&got, "route %s table %d metric %d by %d\n", r.Prefix, r.Table, r.Metric,
				r.NextHopID)
		}
		if n := m.NextHop; n.ID == 45 || len(n.Group) > 1 {
			fmt.Fprintf(&got, "next hop %d %v mode %d\n", n.ID, n.Hop.Segments, n.Hop.Mode)
		}
	}
	const want = `next hop 45 [fcbb:1::] mode 1
route 192.0.2.80/32 table 254 metric 20 by 45
route 2001:db8:80::82/128 table 254 metric 20 by 45
route 2001:db8:80::80/128 table 254 metric 20 by 45
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func frame(version, kind byte, length int, body ...byte) []byte {
	return append([]byte{version, kind, byte(length >> 8), byte(length)}, body...)
}

func TestMalformed(t *testing.T) {
	route := func(edit func([]byte)) []byte {
		m := rtnetlink.Message{Kind: rtnetlink.NewRoute, Route: rtnetlink.Route{
			Table: 10, Prefix: netip.MustParsePrefix("2001:db8::/32"),
			Hops: []rtnetlink.Hop{{Weight: 1, Mode: 1,
				Segments: []netip.Addr{netip.MustParseAddr("fcbb::1")}}},
		}}
		b, err := m.Append(nil, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		edit(b)
		return frame(1, 1, 4+len(b), b...)
	}
	for name, test := range map[string]struct {
		bytes []byte
		want  string
	}{
		"version":      {frame(2, 1, 4), "version 2"},
		"protobuf":     {frame(1, 2, 4), "dplane_fpm_nl"},
		"short length": {frame(1, 1, 3), "length 3"},
		"cut header":   {[]byte{1, 1}, "malformed"},
		"cut frame":    {frame(1, 1, 40, 1, 2, 3), "36 bytes"},
		"no header":    {frame(1, 1, 8, 1, 2, 3, 4), "no header"},
		"length of a message": {route(func(b []byte) { binary.NativeEndian.PutUint32(b, 4000) }),
			"length 4000 of a message"},
		"short message": {route(func(b []byte) { binary.NativeEndian.PutUint32(b, 3) }),
			"length 3 of a message"},
		"length of attribute": {route(func(b []byte) {
			binary.NativeEndian.PutUint16(b[28:],
				200)
		}), "attribute"},
		"prefix length":        {route(func(b []byte) { b[17] = 129 }), "prefix"},
		"bits behind a prefix": {route(func(b []byte) { b[17] = 16 }), "prefix 2001:db8::/16"},
		"address of IPv4":      {route(func(b []byte) { b[16] = 2 }), "no address of family 2"},
		"length of a hop": {route(func(b []byte) { binary.NativeEndian.PutUint16(b[60:], 3) }),
			"next hop"},
		"segments": {route(func(b []byte) { b[len(b)-20] = 9 }), "10 segments"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := messages(bytes.NewReader(test.bytes))
			if !errors.Is(err, rtnetlink.ErrMalformed) || !strings.Contains(fmt.Sprint(err),
				test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

// Whatever a client sends is read, or refused as malformed; what is read can be written and read
// again, if it is what can be written.
func FuzzFrames(f *testing.F) {
	f.Add(recorded(f))
	f.Add(frame(1, 1, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := messages(bytes.NewReader(b))
		if err != nil && !errors.Is(err, rtnetlink.ErrMalformed) {
			t.Fatalf("error %v is not about malformed bytes", err)
		}
		for _, m := range list {
			if m.Kind != rtnetlink.NewNextHop || len(m.NextHop.Group) == 0 ||
				len(m.NextHop.Group) > 1000 {
				continue
			}
			m.NextHop.Hop, m.Adds = rtnetlink.Hop{Weight: 1}, false
			text, err := m.Append(nil, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			h, body, _, err := rtnetlink.Next(text)
			if err != nil {
				t.Fatal(err)
			}
			again, ok, err := new(rtnetlink.Decoder).Decode(h, body)
			if diff := cmp.Diff(m, again, compareAddresses, comparePrefixes); err != nil || !ok ||
				diff != "" {
				t.Fatalf("ok %v, error %v, -written +read:\n%s", ok, err, diff)
			}
		}
	})
}
