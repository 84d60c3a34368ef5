package api

import (
	"testing"

	"sextant/config"
)

// Roles whose programs explain packets can be asked; others are refused with the names of these.
func TestQuestionsToRoles(t *testing.T) {
	roles, _ := config.ExplainedRoles()
	for _, name := range append(roles, "") {
		q := Question{Role: Role(name), Frames: []Frame{{}}}
		if err := q.check(); err != nil {
			t.Errorf("role %q is refused: %v", name, err)
		}
	}
	q := Question{Role: "cflb", Frames: []Frame{{}}}
	const want = `unknown role "cflb"; write edge, host, headend, merge, strays or flowlets`
	if err := q.check(); err == nil || err.Error() != want {
		t.Errorf("a role that explains nothing: %v, want %s", err, want)
	}
}
