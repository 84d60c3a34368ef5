package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// What others named may say anything; nothing of it drives a terminal.
func TestForeignTextIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"web1\n\ta":                   "web1\n\ta",
		"Zürich 東京 😀":                 "Zürich 東京 😀",
		"\x1b[2J\x1b]0;title\x07":     `\x1b[2J\x1b]0;title\x07`,
		"a\rb\x00\x7f\b":              `a\x0db\x00\x7f\x08`,
		"\u009b31m":                   `\u009b31m`,
		"\x9b31m, \xff":               `\x9b31m, \xff`,
		"admin\u202egnp.exe\u2066":    `admin\u202egnp.exe\u2066`,
		red + "gone" + plain:          red + "gone" + plain,
		"\x1b[31;5m" + green + "\x1b": `\x1b[31;5m` + green + `\x1b`,
	} {
		for _, step := range []int{1, 2, 3, len(text)} { // also where writes cut characters in two
			if step < len(text) && strings.Contains(text, "\x1b") {
				continue // sequences of this program are written whole
			}
			var shown bytes.Buffer
			w := &terminalWriter{to: &shown}
			for rest := text; rest != ""; {
				n := min(step, len(rest))
				if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
					t.Fatalf("wrote %d of %d, %v", written, n, err)
				}
				rest = rest[n:]
			}
			if got := shown.String(); got != want {
				t.Errorf("%q is shown as %q, want %q (%d bytes at a time)", text, got, want, step)
			}
		}
	}
}

// Whatever it is: a table has as many lines as rows, and no character that drives a terminal.
func FuzzTablesOfForeignText(f *testing.F) {
	for _, text := range []string{"a", "\x1b[H", "a\nb\tc", "\xf0\x9f", "\u202e", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		table := table{columns: []string{"NAME", "SID"},
			rows: [][]string{{text, "::1"}, {"b", text}}}
		if err := table.write(&out, false); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 3 || !utf8.Valid(out.Bytes()) {
			t.Errorf("%d lines: %q", lines, out.String())
		}
		for _, r := range out.String() {
			if r != '\n' && drives(r) {
				t.Errorf("%q drives the terminal: %q", r, out.String())
			}
		}
	})
}

// A topology's names reach the terminal as text.
func TestNamesOfTopologiesDriveNothing(t *testing.T) {
	file := t.TempDir() + "/evil.edges"
	if err := os.WriteFile(file, []byte("a\x1b[2Jb c\nc d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	e := &env{
		args: []string{"path", "spf", file, "c"}, stdout: &out, stderr: &said,
		getenv: func(string) string { return "" },
	}
	run(t.Context(), e)
	if text := out.String() + said.String(); strings.Contains(text, "\x1b") ||
		!strings.Contains(text, `a\x1b[2Jb`) {
		t.Errorf("shown: %q", text)
	}
}
