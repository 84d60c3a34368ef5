package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// What a capture lets through.
func TestCaptureMatches(t *testing.T) {
	flow := &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8::7]:40000"),
		Destination: netip.MustParseAddrPort("[2001:db8:80::80]:80"), Protocol: config.TCP,
	}
	packet := &api.Explanation{Interface: "eth0", Service: "web", Verdict: "transmit", Flow: flow}
	icmp := &api.Explanation{Interface: "eth1", Verdict: "pass"}
	for _, test := range []struct {
		name        string
		want        api.Capture
		first, icmp bool
	}{
		{"all", api.Capture{}, true, true},
		{"interface", api.Capture{Interface: "eth1"}, false, true},
		{"service", api.Capture{Service: "web"}, true, false},
		{"VIP", api.Capture{VIP: netip.MustParseAddr("2001:db8:80::80")}, true, false},
		{"another VIP", api.Capture{VIP: netip.MustParseAddr("2001:db8:80::81")}, false, false},
		{"source", api.Capture{Source: flow.Source}, true, false},
		{"all flows of a source", api.Capture{Source: netip.AddrPortFrom(flow.Source.Addr(), 0)},
			true, false},
		{"another port", api.Capture{Source: netip.AddrPortFrom(flow.Source.Addr(), 1)}, false,
			false},
		{"destination", api.Capture{Destination: netip.MustParseAddrPort("[2001:db8:80::80]:81")},
			false, false},
		{"protocol", api.Capture{Protocol: config.UDP}, false, false},
		{"verdict", api.Capture{Verdict: "pass"}, false, true},
	} {
		if first, second := test.want.Matches(packet),
			test.want.Matches(icmp); first != test.first || second != test.icmp {
			t.Errorf("%s: %v and %v, want %v and %v", test.name, first, second, test.first,
				test.icmp)
		}
	}
}

// The stream carries packets, and the error that ends it; one that comes before the stream is an
// answer.
func TestCaptureStream(t *testing.T) {
	client, m, _ := start(t, nodeFile)
	want := api.Capture{
		Interface: "eth0", Service: "web", Verdict: "drop", VIP: netip.MustParseAddr("192.0.2.80"),
		Source:      netip.MustParseAddrPort("192.0.2.1:7"),
		Destination: netip.MustParseAddrPort("192.0.2.80:80"), Bytes: 64,
	}
	var got []api.CapturedPacket
	err := client.Capture(t.Context(), want, func(p api.CapturedPacket) error {
		got = append(got, p)
		return nil
	})
	if err == nil || err.Error() != "the interface is gone" {
		t.Errorf("the stream ended with %v", err)
	}
	if len(got) != 1 || string(got[0].Frame) != "\x01\x02" || got[0].Explanation.Service != "web" ||
		got[0].Explanation.Verdict != "drop" || got[0].Time.Unix() != 7 {
		t.Errorf("captured %+v", got)
	}
	m.fail = &api.Error{Code: api.Conflict, Message: "somebody captures already"}
	err = client.Capture(t.Context(), api.Capture{}, func(api.CapturedPacket) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "somebody captures already") {
		t.Errorf("refused with %v", err)
	}
}

// A dump is asked for by name, role and limit; a limit that makes no sense is refused.
func TestDumpMap(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	for limit, want := range map[int]float64{0: 1000, 7: 7} {
		entries, err := client.DumpMap(t.Context(), api.Host, "busy", limit)
		if err != nil || len(entries) != 1 || entries[0].Key != "hostbusy" ||
			entries[0].Value != want {
			t.Errorf("limit %d: %+v, %v", limit, entries, err)
		}
	}
	for _, limit := range []int{-1, 100_001} {
		if _, err := client.DumpMap(t.Context(), "", "busy", limit); err == nil ||
			!strings.Contains(err.Error(), "1 to 100000") {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// A limit that is named without a number is not left out.
func TestLimit(t *testing.T) {
	for query, want := range map[string]int{"": 5, "?limit=1": 1, "?limit=9": 9, "?limit": 0,
		"?limit=": 0, "?limit=10": 0, "?limit=0x3": 0} {
		r := httptest.NewRequest(http.MethodGet, "/v1/maps/busy"+query, nil)
		got, err := api.Limit(r, 5, 9)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", query, got, err)
		}
	}
}
