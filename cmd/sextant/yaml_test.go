package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"sextant/agent/api"
)

// drawText is a text of any characters, or one that YAML may take for something else.
func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[ -~]{0,12}`), rapid.StringMatching(`[a-zé€😀 ]{0,6}`),
		rapid.StringMatching(`[-+0-9.eExXoObB_:]{0,8}`),
		rapid.SampledFrom([]string{"true", "no", "null", "~", ".inf", "1_000", "2001:db8::", "-",
			"2026-11-28", "- a", "a: b", "a #b", "?", "? a", "---", "...", "<<", "\\", "a\tb", "=",
			"\u0000", "\u0085", "\u2028", "\ufeff", "a\nb", "0x1f", "1e3", "12:30:45"}),
	).Draw(t, "text")
}

// drawValue is a value that JSON has, with at most that many levels of others in it.
func drawValue(t *rapid.T, depth int) any {
	first, last := 0, 7
	if depth == 0 {
		first = 2
	} else if depth > 2 {
		last = 1 // lists and objects, or most documents are a number
	}
	switch rapid.IntRange(first, last).Draw(t, "kind") {
	case 0:
		object := map[string]any{}
		for range rapid.IntRange(0, 6).Draw(t, "keys") {
			object[drawText(t)] = drawValue(t, depth-1)
		}
		return object
	case 1:
		list := make([]any, rapid.IntRange(0, 6).Draw(t, "items"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	case 2:
		return drawText(t)
	case 3:
		return rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 10),
			rapid.SampledFrom([]float64{0.5, 1e21, 1e-7, 123456789.5, math.MaxFloat64, 1e22})).
			Filter(func(f float64) bool { return math.Abs(f) < 1<<63 || math.Abs(f) >= 1e21 }).
			Draw(t, "float")
	case 4:
		return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-20, 20)).Draw(t, "integer")
	case 5:
		return rapid.Uint64().Draw(t, "unsigned")
	case 6:
		return rapid.Bool().Draw(t, "bool")
	}
	return nil
}

// Whatever a document has, it is written as the library writes it.
func TestYAMLIsThatOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document, err := json.Marshal(drawValue(t, 4))
		if err != nil {
			t.Fatal(err)
		}
		want, err := yaml.JSONToYAML(document)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jsonToYAML(document)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("error %v, %s is\n%s\nof the library:\n%s", err, document, got, want)
		}
	})
}

// An integer that no 64 bits hold is a number still; the library writes it as a text.
func TestYAMLOfALargeInteger(t *testing.T) {
	const integer = "18446744073709552000"
	if got, err := jsonToYAML([]byte(integer)); err != nil || string(got) != integer+"\n" {
		t.Errorf("%q, error %v, want %s and a line break", got, err, integer)
	}
}

// The document is that of `service list` with 10,000 services of seven backends.
func BenchmarkYAML(b *testing.B) {
	list := api.List[api.Service]{}
	for i := range 10_000 {
		s := api.Service{Name: fmt.Sprint("service-", i), Role: api.Edge, Port: 80,
			VIP: netip.MustParseAddr("2001:db8::1"), Edge: &api.EdgeService{}}
		for j := range 7 {
			s.Edge.Backends = append(s.Edge.Backends, api.Backend{
				Name: fmt.Sprint("backend-", i, j), Packets: uint64(1000*i + j),
				SID: netip.MustParseAddr("fcbb:bb00:1:e000::")})
		}
		list.Items = append(list.Items, s)
	}
	document, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	for name, write := range map[string]func([]byte) ([]byte, error){
		"own": jsonToYAML, "library": yaml.JSONToYAML,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				if _, err := write(document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
