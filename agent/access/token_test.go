package access

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
)

func newToken(t testing.TB, label string, expires time.Time) (Token, string) {
	t.Helper()
	token, text, err := NewToken(label, api.Operate, expires)
	if err != nil {
		t.Fatal(err)
	}
	return token, text
}

// What is written is read again, comments stay, and the file has no token, but hashes.
func TestEditTokens(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	add := func(token Token) func([]Token) ([]Token, error) {
		return func(all []Token) ([]Token, error) { return append(all, token), nil }
	}
	first, secret := newToken(t, "ada@laptop", time.Time{})
	if err := EditTokens(name, add(first)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new file: %v, %v", info.Mode(), err)
	}
	text, _ := os.ReadFile(name)
	if strings.Contains(string(text), secret) {
		t.Error("the file has the token itself")
	}
	if err := os.WriteFile(name, append(text, "# of the night shift\n"...), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	second, _ := newToken(t, "shift", time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC))
	if err := EditTokens(name, add(second)); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(name)
	want := header + "# of the night shift\n" + first.String() + "\n" + second.String() + "\n"
	if string(text) != want {
		t.Errorf("the file:\n%s\nnot\n%s", text, want)
	}
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o640 {
		t.Errorf("its mode became %v", info.Mode())
	}
	all, err := ReadTokens(name)
	if err != nil || len(all) != 2 || all[0] != first || all[1] != second {
		t.Errorf("read again: %v, %v", all, err)
	}
	if got, ok := holder(all, secret); !ok || got != first {
		t.Errorf("the holder of the first token: %v, %v", got, ok)
	}
}

// Of several who edit the file at the same time, none loses what it wrote.
func TestEditsDoNotMeet(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	var wait sync.WaitGroup
	const n = 16
	for i := range n {
		token, _ := newToken(t, strings.Repeat("x", i+1), time.Time{})
		wait.Go(func() {
			if err := EditTokens(name, func(all []Token) ([]Token, error) {
				return append(all, token), nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if all, err := ReadTokens(name); err != nil || len(all) != n {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}

func TestParseTokensRefuses(t *testing.T) {
	token, _ := newToken(t, "a", time.Time{})
	good := token.String()
	for text, want := range map[string]string{
		"a read never":                            "line 1: it is no token",
		"\n# x\na king never sha256:00":           `line 3: unknown role "king"`,
		"a/b read never sha256:00":                `line 1: "a/b" is no label`,
		"a read tomorrow sha256:00":               `"tomorrow" is no time`,
		"a read never sha256:00":                  "the last word is no hash",
		"a read never " + strings.Repeat("0", 71): "the last word is no hash",
		good + "\n" + good:                        "line 2: label a is that of line 1, too",
		strings.Repeat("#", maxFile+1):            "at most 1048576 are read",
	} {
		if _, err := ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, not %q", text, err, want)
		}
	}
}

// What is read is written and read again as it was, and lets nobody in who shows the file's text.
func FuzzParseTokens(f *testing.F) {
	token, _ := newToken(f, "ada", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	f.Add([]byte(token.String() + "\n# comment\n\nx read never sha256:" + strings.Repeat("0", 64)))
	f.Add([]byte("a read 0001-01-01T00:00:00Z sha256:" + strings.Repeat("f", 64)))
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := ParseTokens(text)
		if err != nil {
			return
		}
		again, err := ParseTokens([]byte(lines(tokens)))
		if err != nil || len(again) != len(tokens) {
			t.Fatalf("%q is read as %v, and that as %v, %v", text, tokens, again, err)
		}
		for i, token := range tokens {
			if again[i].String() != token.String() {
				t.Errorf("%v became %v", token, again[i])
			}
			if !api.Admin.Includes(token.Role) {
				t.Errorf("role %q", token.Role)
			}
			for _, shown := range []string{token.Label, token.String(), "", string(text)} {
				if _, ok := holder(tokens, shown); ok {
					t.Errorf("%q lets in", shown)
				}
			}
		}
	})
}
