package srv6_test

import (
	"testing"

	"sextant/packet/srv6"
)

// Names and code points of the IANA registry, one of each kind.
func TestBehaviors(t *testing.T) {
	for name, code := range map[string]srv6.Behavior{
		"End": 1, "End with PSP & USP": 4, "End with USD": 28, "End with PSP, USP & USD": 31,
		"End.X": 5, "End.X with USP & USD": 34, "End.T": 9, "End.T with PSP": 10,
		"End.T with PSP, USP & USD": 39,
		"End.B6.Encaps":             14, "End.BM": 15, "End.DX6": 16, "End.DX4": 17, "End.DT6": 18,
		"End.DT4": 19, "End.DT46": 20,
		"End.DX2": 21, "End.DT2M": 24, "End.B6.Encaps.Red": 27,
		"End with NEXT-CSID": 43, "End with NEXT-CSID, PSP, USP & USD": 50,
		"End.X with NEXT-CSID & PSP": 53, "End.T with NEXT-CSID & USD": 89,
		"End.DT46 with NEXT-CSID": 64, "End.B6.Encaps.Red with NEXT-CSID": 94,
		"End.OFFER": 32768, "Opaque": 65535,
	} {
		if got := code.String(); got != name {
			t.Errorf("behaviour %d is called %q, want %q", code, got, name)
		}
		if got, err := srv6.ParseBehavior(name); err != nil || got != code {
			t.Errorf("ParseBehavior(%q) = %d, %v, want %d", name, got, err, code)
		}
	}
}

// Every code point has a name that reads back, or none.
func TestBehaviorNamesAreUnique(t *testing.T) {
	named := 0
	for code := range 1 << 16 {
		behavior := srv6.Behavior(code)
		got, err := srv6.ParseBehavior(behavior.String())
		if err != nil {
			continue
		}
		named++
		if got != behavior {
			t.Errorf("behaviours %d and %d are both called %q", code, got, behavior)
		}
	}
	// RFC 8986: 36 and Opaque. RFC 9800: 35 of the NEXT-C-SID flavour. And five of our own.
	if named != 78 {
		t.Errorf("%d behaviours have names, want 78", named)
	}
}

func TestParseBehavior(t *testing.T) {
	if got, err := srv6.ParseBehavior("end.dt46"); err != nil || got != srv6.EndDT46 {
		t.Errorf("ParseBehavior(end.dt46) = %s, %v", got, err)
	}
	_, err := srv6.ParseBehavior("End.DT64")
	wantError(t, err,
		`unknown SRv6 behaviour "End.DT64"; use a name of the IANA registry such as End.DT46, or End.OFFER`)
	if got := srv6.Behavior(4711).String(); got != "Behavior(4711)" {
		t.Errorf("String of an unknown behaviour is %q", got)
	}
}
