package config

import (
	"net/netip"
	"testing"

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
