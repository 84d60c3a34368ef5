package model_test

import (
	"testing"

	"sextant/datapath/model"
)

// Each reason has a meaning, and a fault of the set-up has a remedy.
func TestEveryReasonHasAMeaning(t *testing.T) {
	for _, name := range names[model.Reason]()[1:] {
		if model.Meaning(name) == name {
			t.Errorf("%s: say in bpf/include/reason.h what it means, and what mends it", name)
		}
		if cause, remedy := model.Fault(name); (cause == "") != (remedy == "") {
			t.Errorf("%s: cause %q, remedy %q", name, cause, remedy)
		}
	}
	if cause, _ := model.Fault("unheard_of"); cause != "" {
		t.Errorf("a reason that is not known has the cause %q", cause)
	}
	if got := model.Meaning("unheard_of"); got != "unheard_of" {
		t.Errorf("a reason that is not known means %q", got)
	}
}
