package model_test

import (
	"testing"

	"sextant/datapath/model"
)

// Each reason that the model knows, and the one that only a driver can bring about, means something
// to people.
func TestEveryReasonHasAMeaning(t *testing.T) {
	names := []string{"no_headroom"}
	for reason := model.ReasonNone + 1; reason.String() != model.Reason(255).String(); reason++ {
		names = append(names, reason.String())
	}
	for _, name := range names {
		if model.Meaning(name) == name {
			t.Errorf("%s: say in meanings what it means, and what mends it", name)
		}
	}
	if got := model.Meaning("unheard_of"); got != "unheard_of" {
		t.Errorf("a reason that is not known means %q", got)
	}
}
