package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tokens are made, listed without themselves, and removed; what can't be is said.
func TestToken(t *testing.T) {
	w := newWorld(t, fakeNode)
	file := filepath.Join(t.TempDir(), "tokens")
	made := w.run("token", "add", "ada", "--role", "admin", "--expires", "never", "-f", file)
	if !strings.Contains(made, "\nsextant_") || !strings.HasSuffix(made, "[exit 0]\n") {
		t.Fatalf("add: %s", made)
	}
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"add ada", exitConflict, "has a token with this label"},
		{"add bob --role king", exitUsage, `unknown role "king"`},
		{"add bob --expires soon", exitUsage, `--expires "soon" is no time`},
		{"add bob --expires 30d", 0, "sextant_"},
		{"list -o name", 0, "ada\nbob\n"},
		{"list", 0, "ada    admin  never"},
		{"remove eve", exitNotFound, `no token with the label "eve"`},
		{"remove ada", 0, ""},
		{"list -o name", 0, "bob\n"},
	} {
		r := w.run(append(append([]string{"token"}, strings.Fields(step.args)...), "-f", file)...)
		if !strings.HasSuffix(r, fmt.Sprintf("[exit %d]\n", step.code)) ||
			!strings.Contains(r, step.want) {
			t.Errorf("not %d with %q: %s", step.code, step.want, r)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "\nada ") { // a digest can have these letters
		t.Errorf("the file still has the removed token: %s, %v", text, err)
	}
	end, err := expiryOf("30d", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || end.Format(time.DateOnly) != "2030-01-31" {
		t.Errorf("30 days: %v, %v", end, err)
	}
}
