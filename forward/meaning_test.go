package forward_test

import (
	"testing"

	"sextant/forward"
)

// Each reason that the model knows, and the one that only a driver can bring about, means something to people.
func TestEveryReasonHasAMeaning(t *testing.T) {
	names := []string{"no_headroom"}
	for reason := forward.ReasonNone + 1; reason.String() != forward.Reason(255).String(); reason++ {
		names = append(names, reason.String())
	}
	for _, name := range names {
		if forward.Meaning(name) == name {
			t.Errorf("%s: say in meanings what it means, and what mends it", name)
		}
	}
	if got := forward.Meaning("unheard_of"); got != "unheard_of" {
		t.Errorf("a reason that is not known means %q", got)
	}
}
