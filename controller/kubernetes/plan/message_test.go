package plan_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sextant/controller/kubernetes/plan"
)

// Messages are as they were unless they are too long for an event, and UTF-8 where they are cut.
func TestMessage(t *testing.T) {
	for _, text := range []string{"", "edges serve it", strings.Repeat("a", 1000)} {
		if got := plan.Message(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for shift := range 4 {
		long := strings.Repeat("a", shift) + strings.Repeat("\u20ac", 40_000)
		got := plan.Message(long)
		if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasSuffix(got, "\u20ac...") ||
			!strings.HasPrefix(long, strings.TrimSuffix(got, "...")) {
			t.Errorf("shift %d: %d bytes: %q", shift, len(got), got)
		}
	}
}
