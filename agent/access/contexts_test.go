package access

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestContextsAreRefused(t *testing.T) {
	const good = "contexts:\n- {name: a, daemon: agent, address: 'x:1', token: t}\n"
	for text, want := range map[string]string{
		"contexts: [{name: a}]": "contexts[0]: name, address and token " +
			"are needed",
		strings.Replace(good, "agent", "x", 1):             `unknown daemon "x"`,
		strings.Replace(good, "name", "nam", 1):            "nam",
		good + strings.TrimPrefix(good, "contexts:\n"):     `contexts[1]: "a" is there twice`,
		strings.Replace(good, ": t}", `: t, ca: "\n"}`, 1): "ca has nothing in PEM",
		strings.Replace(good, "'x:1'", `"x:1\t"`, 1):       "can't be printed",
	} {
		if _, err := ParseContexts([]byte(text)); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// What is read is written and read again as it was.
func FuzzParseContexts(f *testing.F) {
	f.Add([]byte("contexts:\n- {name: a, daemon: agent, address: 'x:1', token: t, " +
		"ca: \"-----BEGIN A-----\\nAQID\\n-----END A-----\\n\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseContexts(text)
		if err != nil {
			return
		}
		name := filepath.Join(t.TempDir(), "contexts.yaml")
		if err := WriteContexts(name, list); err != nil {
			t.Fatal(err)
		}
		again, err := ReadContexts(name)
		if err != nil || !slices.Equal(again, list) {
			t.Errorf("%q is read as %+v, and that as %+v, %v", text, list, again, err)
		}
	})
}
