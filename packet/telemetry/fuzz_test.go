package telemetry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/telemetry"
)

// same fails unless what was accepted is written and read again as it was.
func same[T any](t *testing.T, v T, write func([]byte) ([]byte, error),
	read func([]byte) (T, error)) {
	t.Helper()
	b, err := write(nil)
	if err != nil {
		t.Fatalf("accepted, but not written: %+v, %v", v, err)
	}
	again, err := read(b)
	if diff := cmp.Diff(v, again); diff != "" || err != nil {
		t.Fatalf("written %x, read %v, %s", b, err, diff)
	}
}

func FuzzParseMD(f *testing.F) {
	f.Add(fromHex(f, "10070028 20000206 90000000 00000000 00000002 00000025 00000001 00000005"))
	f.Fuzz(func(t *testing.T, b []byte) {
		md, size, err := telemetry.ParseMD(b)
		if err != nil {
			return
		}
		if size > len(b) || len(md.AppendSamples(nil, 0)) != md.Hops()-md.FreeSlots() {
			t.Fatalf("size %d of %d, %+v", size, len(b), md)
		}
		same(t, md, md.AppendBinary, func(b []byte) (telemetry.MD, error) {
			md, _, err := telemetry.ParseMD(b)
			return md, err
		})
	})
}

func FuzzParseMX(f *testing.F) {
	f.Add(fromHex(f, "38040029 28000000 90000000 534d8000 40000001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if mx, size, err := telemetry.ParseMX(b); err == nil &&
			(size > len(b) || len(mx.Source) != size-16) {
			t.Fatalf("size %d of %d, %+v", size, len(b), mx)
		}
	})
}

func FuzzParseReport(f *testing.F) {
	f.Add(fromHex(f, "20c0abcd 0000000c 15040260 50000000 00000000 00070001 00000025"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, rest, err := telemetry.ParseGroup(b)
		for err == nil && len(rest) > 0 {
			var r telemetry.Report
			before := len(rest)
			if r, rest, err = telemetry.ParseReport(rest); err != nil {
				return
			}
			if len(rest) >= before {
				t.Fatalf("%d octets left of %d", len(rest), before)
			}
			r.Baseline()
			r.Congestion()
			for tlvs := r.Inner; len(tlvs) > 0; {
				var tlv telemetry.TLV
				var broken error
				if tlv, tlvs, broken = telemetry.ParseTLV(tlvs); broken != nil {
					break
				}
				same(t, tlv, tlv.Append, func(b []byte) (telemetry.TLV, error) {
					tlv, _, err := telemetry.ParseTLV(b)
					return tlv, err
				})
			}
			same(t, r, r.Append, func(b []byte) (telemetry.Report, error) {
				r, _, err := telemetry.ParseReport(b)
				return r, err
			})
		}
	})
}

func FuzzParseTrace(f *testing.F) {
	f.Add(fromHex(f, "31120000 007b1000 82000000 00000001 00000002"))
	f.Add(fromHex(f, "31120000 007b0800 80000200 00000001 00ffffff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		trace, size, err := telemetry.ParseTrace(b)
		if err != nil {
			return
		}
		samples, _ := trace.AppendSamples(nil, 0)
		if size > len(b) || len(samples) > len(trace.Data) {
			t.Fatalf("size %d of %d, %d samples", size, len(b), len(samples))
		}
		same(t, trace, trace.AppendBinary, func(b []byte) (telemetry.Trace, error) {
			trace, _, err := telemetry.ParseTrace(b)
			return trace, err
		})
	})
}

func FuzzParseDirectExport(f *testing.F) {
	f.Add(fromHex(f, "31120004 007b00c0 82000000 00000007 00000009"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, size, err := telemetry.ParseDirectExport(b); err == nil && size > len(b) {
			t.Fatalf("size %d of %d, %+v", size, len(b), d)
		}
	})
}

func FuzzParsePathTrace(f *testing.F) {
	f.Add(fromHex(f, "3209 002003 abc501 000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, size, err := telemetry.ParsePathTrace(b)
		if err != nil {
			return
		}
		if size > len(b) || len(p.AppendSamples(nil, 0, 5e9,
			telemetry.PathTracing{Shift: 16})) != p.Hops() {
			t.Fatalf("size %d of %d, %d hops", size, len(b), p.Hops())
		}
		same(t, p, p.AppendBinary, func(b []byte) (telemetry.PathTrace, error) {
			p, _, err := telemetry.ParsePathTrace(b)
			return p, err
		})
	})
}

func FuzzFindOption(f *testing.F) {
	f.Add(fromHex(f, "06010100 31040000 00000000 00000000"), uint8(0x31))
	f.Fuzz(func(t *testing.T, b []byte, option uint8) {
		if found, err := telemetry.FindOption(b, option); err == nil && found[0] != option {
			t.Fatalf("option %#x: %x", option, found)
		}
	})
}
