package telemetry_test

import (
	"errors"
	"slices"
	"testing"

	"sextant/packet/telemetry"
)

const intPort = 33122

// outer is IPv6 with an SRH of one segment, and UDP to intPort; then the INT of two hops.
const outer = `60000000 00482b40` + `
	fc000000000000000000000000000001 fc000000000000000000000000000002
	11020400 00000000 fc000000000000000000000000000002
	1234 8162 0030 0000
	18070029 20000206 90000000 00000000 00000002 00000025 00000001 00000005`

func TestEmbeddedMD(t *testing.T) {
	v6 := fromHex(t, outer)
	v4 := slices.Concat(fromHex(t, "45000048 00000000 40110000 0a000001 0a000002"), v6[40+24:])
	for kind, packet := range map[telemetry.InType][]byte{
		telemetry.InIPv4: v4, telemetry.InIPv6: v6,
	} {
		md, err := telemetry.EmbeddedMD(packet, kind, intPort)
		if err != nil || md.Hops() != 2 || md.Remaining != 6 {
			t.Fatalf("type %d: %+v, %v", kind, md, err)
		}
		if _, err := telemetry.EmbeddedMD(packet, kind, intPort+1); !errors.Is(err,
			telemetry.NotFound) {
			t.Fatalf("type %d, another port: %v", kind, err)
		}
		for cut := range len(packet) {
			if _, err := telemetry.EmbeddedMD(packet[:cut], kind, intPort); !errors.Is(err,
				telemetry.Truncated) {
				t.Fatalf("type %d cut to %d octets: %v", kind, cut, err)
			}
		}
	}
	later := slices.Clone(v4)
	later[7] = 1
	if _, err := telemetry.EmbeddedMD(later, telemetry.InIPv4, intPort); !errors.Is(err,
		telemetry.NotFound) {
		t.Fatalf("a later fragment: %v", err)
	}
}

func FuzzEmbeddedMD(f *testing.F) {
	f.Add(fromHex(f, outer), uint8(telemetry.InIPv6))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		if md, err := telemetry.EmbeddedMD(b, telemetry.InType(kind), intPort); err == nil &&
			len(md.Stack) > len(b) {
			t.Fatalf("stack of %d octets in %d", len(md.Stack), len(b))
		}
	})
}
