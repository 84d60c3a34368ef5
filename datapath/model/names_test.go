package model_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
)

// names returns the names of the values from 0 on, until one is unknown.
func names[T interface {
	~uint8
	fmt.Stringer
}]() (all []string) {
	for value := T(0); value.String() != "unknown"; value++ {
		all = append(all, value.String())
	}
	return all
}

var update = flag.Bool("update", false, "write testdata/reasons.txt")

// pinnedReasons are the names of drop reasons in testdata, which -update writes anew.
func pinnedReasons(t *testing.T) []string {
	t.Helper()
	const file = "testdata/reasons.txt"
	if *update {
		text := strings.Join(names[model.Reason](), "\n") + "\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestNames pins the names that counters, logs and the command line show. New drop reasons:
// go test ./datapath/model -run TestNames -args -update.
func TestNames(t *testing.T) {
	for _, test := range []struct{ got, want []string }{
		{names[model.Verdict](), strings.Fields(`pass transmit redirect hand_to_kernel drop`)},
		{names[model.Reason](), pinnedReasons(t)},
		{names[model.Answer](), strings.Fields(`none echoed too_big_answered translated`)},
		{names[model.Offer](),
			strings.Fields(
				`none last here accepted refused refused_before no_service not_here not_tcp stray ` +
					`passed_before returned`)},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if slices.Contains(test.got, "") {
			t.Errorf("a value without a name in %q", test.got)
		}
	}
	if got := model.Reason(255).String(); got != "unknown" {
		t.Errorf("reason 255 is %q", got)
	}
}
