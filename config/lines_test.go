package config

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/goccy/go-yaml/token"
	"pgregory.net/rapid"
)

// Whatever a text is, it has the quotes that the library gives it, and texts of usual characters
// are not left to the library.
func TestServiceLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,12}`),
			rapid.StringMatching(`[-+0-9.eExXoObB_:]{0,8}`), rapid.SampledFrom([]string{"true", "no",
				"null", "~", ".inf", "2001:db8::", "1_000", "2026-11-28", "-", "- a", "a: b", "?"}))
		s := fresh[Service]()
		s.Name, s.VIP, s.Port = text.Draw(t, "name"), netip.MustParseAddr("2001:db8::1"), 80
		s.Backends = []Backend{{Name: "b", SID: netip.MustParseAddr("fcbb:bb00:1::"),
			Site: text.Draw(t, "site")}}
		s.Way = &Way{By: ByDelay, Avoid: rapid.SliceOfN(text, 0, 3).Draw(t, "avoid")}
		want, err := linesByLibrary(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := serviceLines(s)
		if err != nil || string(got) != string(want) {
			t.Fatalf("error %v, lines:\n%s\nof the library:\n%s", err, got, want)
		}
	})
}

// usualService is one of ten backends.
func usualService() Service {
	s := fresh[Service]()
	s.Name, s.VIP, s.Port = "web", netip.MustParseAddr("2001:db8::1"), 80
	for range 10 {
		s.Backends = append(s.Backends, Backend{Name: "b", Weight: 1, State: Up,
			SID: netip.MustParseAddr("fcbb:bb00:1::")})
	}
	return s
}

// A usual service is written without the library.
func TestUsualServiceLines(t *testing.T) {
	s := usualService()
	check := fresh[Check]()
	s.Check = &check
	if w := writeService(s); w.unusual {
		t.Errorf("%+v is left to the library", s)
	}
}

func BenchmarkServiceLines(b *testing.B) {
	for name, lines := range map[string]func(Service) ([]byte, error){
		"own": serviceLines, "library": linesByLibrary,
	} {
		b.Run(name, func(b *testing.B) {
			s := usualService()
			for b.Loop() {
				if _, err := lines(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzNeedsQuotes: quotes are what the library says.
func FuzzNeedsQuotes(f *testing.F) {
	for _, text := range []string{"", "s1", "e5", "E1.5", "inf", "infinity1", "nan.1", "no", "n0",
		"1h0m0s", "0x10", "0xfs", "0b1", "0o7", "0s", "1_000s", "15:4", "1:2:3", "2001:db8::80",
		"2001:db8::", "2026-11-29", "2026-11-29t10:00:00Z", "99999999999999999999s",
		"999999999999999999999:1:1", "a-1", "a- 1", "a: 1", "a1:", "-1", "_1", ".1", "1.5s", "up"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := needsQuotes(text), token.IsNeedQuoted(text); got != want {
			t.Fatalf("%q needs quotes: %v, by the library %v", text, got, want)
		}
	})
}

// TestNeedsQuotes draws texts of what numbers, times and addresses are made of.
func TestNeedsQuotes(t *testing.T) {
	const octets = "001:-._+aefghmnosxbzTZ~/ #"
	r := rand.New(rand.NewPCG(20, 11))
	for range 500_000 {
		text := make([]byte, r.IntN(12))
		for i := range text {
			text[i] = octets[r.IntN(len(octets))]
		}
		if got, want := needsQuotes(string(text)), token.IsNeedQuoted(string(text)); got != want {
			t.Fatalf("%q needs quotes: %v, by the library %v", text, got, want)
		}
	}
}
