package api_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
)

const (
	ethernet = "020000000002 020000000001 86dd"
	ends     = "20010db8000100000000000000000001 20010db8000200000000000000000002"
	inside   = "60000000 00040640" + ends + "9c4001bb"
)

// What nodes wrote is told for each format, also of a frame that is cut off behind it.
func TestTelemetryOf(t *testing.T) {
	number := func(v uint32) *uint32 { return &v }
	queue, one, nine := uint8(0), uint64(1), uint64(9)
	for _, test := range []struct {
		name, frame string
		want        []api.CarriedTelemetry
	}{
		{"none", ethernet + inside, nil},
		{"empty", "", nil},
		{"INT-MD", ethernet + "60000000 00581140" + ends + "1234 8162 0058 0000" +
			"18070029 20000205 90000000 00000000 00000009 0000000c 00000001 00000040",
			[]api.CarriedTelemetry{{Format: "int-md", Hops: []api.Hop{
				{Hop: 0, Node: &one, QueueID: &queue, QueueBytes: number(64)},
				{Hop: 1, Node: &nine, QueueID: &queue, QueueBytes: number(12)}}}}},
		{"INT-MX", ethernet + "60000000 00301140" + ends + "1234 8162 0030 0000" +
			"38030029 20000000 90000000 00000000" + inside,
			[]api.CarriedTelemetry{{Format: "int-mx", Hops: []api.Hop{}}}},
		{"Path Tracing", ethernet + "60000000 00140040" + ends + "0601 0000 3206 002003 abc501" +
			"01020000 9c4001bb", []api.CarriedTelemetry{{Format: "path-tracing", Hops: []api.Hop{
			{Hop: 0, Egress: number(0xabc)}, {Hop: 1, Egress: number(2)}}}}},
	} {
		frame, err := hex.DecodeString(strings.Join(strings.Fields(test.frame), ""))
		if err != nil {
			t.Fatal(test.name, err)
		}
		if diff := cmp.Diff(test.want, api.TelemetryOf(frame)); diff != "" {
			t.Error(test.name, diff)
		}
	}
}
