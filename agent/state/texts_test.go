package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// largeText is that of a node of many services, some of which have others.
func largeText(others ...int) string {
	services := make([]string, 10_000)
	for i := range services {
		services[i] = "    - name: s" + strconv.Itoa(i) + "\n      vip: 2001:db8:80::80\n"
	}
	for _, i := range others {
		services[i] += "      port: 7\n"
	}
	return "node: n\nedge:\n  services:\n" + strings.Join(services, "") + "host: {}\n"
}

// opened is the store of a folder.
func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, "n", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keeps makes a text what runs, and writes it down as a change does.
func (s *Store) keeps(text string) error {
	s.Text, s.Kept.File, s.Kept.Node = text, "file", text
	if err := s.Write(); err != nil {
		return err
	}
	return s.Remember("me", "apply", nil, time.Now())
}

// namesIn are the files of a folder.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// What a text differs by makes that text, also after it was written as JSON; of another one it
// makes nothing else.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"\n    - ", "a", "b", "\n",
			"é", "è", strings.Repeat("c\n", 3_000)}), 0, 30),
			func(parts []string) string { return strings.Join(parts, "") })
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		if rapid.Bool().Draw(t, "alike") {
			begin, end := text.Draw(t, "begin"), text.Draw(t, "end")
			from, to = begin+from+end, begin+to+end
		}
		d := wholeText{"x", from}.differenceTo(to)
		if d == nil {
			return
		}
		written, err := json.Marshal(d)
		if err == nil {
			d = &difference{}
			err = json.Unmarshal(written, d)
		}
		if got, ofErr := d.of(from); err != nil || ofErr != nil || got != to {
			t.Fatalf("errors %v and %v, %q in place of %q", err, ofErr, got, to)
		}
		other := text.Draw(t, "other")
		if got, err := d.of(other); err == nil && got != to {
			t.Fatalf("of %q it made %q, not %q", other, got, to)
		}
	})
}

// A change of a large node writes what differs, and whatever was kept can be read, also by the next
// agent. Nothing that is not needed stays.
func TestLargeTexts(t *testing.T) {
	dir := t.TempDir()
	s, texts := opened(t, dir), map[int]string{}
	for n := 1; n <= 3*maxHistory; n++ {
		text := largeText(n*7, n*11, 9_999)
		if n%40 == 0 {
			text = strings.ReplaceAll(largeText(), "2001:db8:80::80", fmt.Sprint("2001:db8::", n))
		}
		if texts[n] = text; n%33 == 0 {
			s.Close()
			s = opened(t, dir)
			if s.Kept.Node != texts[n-1] {
				t.Fatalf("after %d changes the next agent reads another text", n-1)
			}
		}
		if err := s.keeps(text); err != nil {
			t.Fatal(err)
		}
		last := s.History.List[len(s.History.List)-1]
		if got, err := s.History.Text(0); err != nil || got != text || last.Number != n {
			t.Fatalf("configuration %d: error %v, its text is another one than %d's", n, err,
				last.Number)
		}
		if len(s.written) > 10_000 || last.size > 10_000 {
			t.Fatalf("change %d wrote %d and %d octets", n, len(s.written), last.size)
		}
	}
	s.Close()
	s = opened(t, dir)
	defer s.Close()
	if n := len(s.History.List); n != maxHistory {
		t.Errorf("the history has %d configurations", n)
	}
	needed := map[string]bool{}
	for _, p := range s.History.List {
		if got, err := s.History.Text(p.Number); err != nil || got != texts[p.Number] {
			t.Errorf("error %v, or the text of %d is another one", err, p.Number)
		}
		needed[p.Of.File] = true
	}
	if files := namesIn(t, s.texts.dir); len(files) != len(needed) || len(files) > 4 {
		t.Errorf("there are %q, of which %d are needed", files, len(needed))
	}
	if err := s.keeps("node: n\n"); err != nil || s.Kept.Of != nil {
		t.Errorf("error %v; a small text is kept as %+v", err, s.Kept.Of)
	}
}

// What runs and what ran before are both there while a change waits for its confirmation, however
// much they differ.
func TestLargeTextsUnconfirmed(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	before, now := largeText(), strings.ReplaceAll(largeText(), "2001:db8:80::80", "2001:db8::1")
	if err := s.keeps(before); err != nil {
		t.Fatal(err)
	}
	s.Kept.Unconfirmed = &Unconfirmed{Text: Text{Node: before}}
	for range 3 {
		if err := s.keeps(now); err != nil {
			t.Fatal(err)
		}
	}
	if s.Kept.Unconfirmed.Node != before {
		t.Error("writing changed what is kept")
	}
	s.Close()
	s = opened(t, dir)
	defer s.Close()
	if s.Kept.Node != now || s.Kept.Unconfirmed.Node != before ||
		len(namesIn(t, s.texts.dir)) != 2 {
		t.Error("another text is read")
	}
}

// errDeath is what a process meets that dies: nothing that it would do after is done.
var errDeath = errors.New("the process died")

// Whenever a process dies between two writes, the next one reads the state that was written last,
// whole, and goes on; with it, the history has all that was told to be in it.
func TestLargeTextsSurviveDeath(t *testing.T) {
	versions := []string{largeText(), largeText(5),
		strings.ReplaceAll(largeText(), "2001:db8:80::80", "2001:db8::1"), "node: n\n",
		largeText(9)}
	lives := beforeWrite
	defer func() { beforeWrite = lives }()
	for death := 0; ; death++ {
		dir, writes, told := t.TempDir(), 0, 0
		beforeWrite = func(path string) error {
			if writes++; writes > death {
				return fmt.Errorf("%w before it wrote %s", errDeath, path)
			}
			return nil
		}
		s := opened(t, dir)
		var err error
		for _, text := range versions {
			if err = s.keeps(text); err != nil {
				break
			}
			told++
		}
		s.Close()
		if beforeWrite = lives; err != nil && !errors.Is(err, errDeath) {
			t.Fatal(err)
		}
		s = opened(t, dir)
		at := slices.Index(append([]string{""}, versions...), s.Kept.Node)
		if s.damage != "" || at != told && at != told+1 {
			t.Errorf("death %d: %d states were told, %d is kept; %s", death, told, at, s.damage)
		}
		for i, text := range versions[:told] {
			if got, err := s.History.Text(i + 1); err != nil || got != text {
				t.Errorf("death %d: error %v, or another text %d", death, err, i+1)
			}
		}
		if err := s.keeps(largeText(3)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s = opened(t, dir); s.Kept.Node != largeText(3) {
			t.Errorf("death %d: the next agent kept nothing", death)
		}
		s.Close()
		if err == nil && told == len(versions) {
			return
		}
	}
}

// A text whose file is lost or damaged is refused: the node file runs, with the numbers of before,
// and what is left stays where the message says, with the texts that it names.
func TestLargeTextsDamaged(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"lost": os.Remove,
		"cut":  func(file string) error { return os.Truncate(file, 300_000) },
		"other": func(file string) error {
			return os.WriteFile(file, []byte(largeText(1, 2, 3)), 0o600)
		},
		"state": func(file string) error {
			return os.Truncate(filepath.Join(filepath.Dir(filepath.Dir(file)), "n.json"), 900)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := opened(t, dir)
			s.Kept.EdgeServices["a"] = 7
			for _, text := range []string{largeText(), largeText(5, 70, 700, 7_000)} {
				if err := s.keeps(text); err != nil {
					t.Fatal(err)
				}
			}
			s.Close()
			file := filepath.Join(s.texts.dir, namesIn(t, s.texts.dir)[0])
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
			s = opened(t, dir)
			defer s.Close()
			if s.Kept.Node != "" || s.Kept.File != "" || !strings.Contains(s.damage, "damaged") ||
				name != "state" && s.Kept.EdgeServices["a"] != 7 {
				t.Errorf("%.99q of %q is kept: %s", s.Kept.Node, s.Kept.File, s.damage)
			}
			next := strings.ReplaceAll(largeText(), "2001:db8:80::80", "2001:db8::1")
			if err := s.keeps(next); err != nil {
				t.Fatal(err)
			}
			s.History.List = nil
			s.texts.sweep(s.path, nil)
			if n := len(namesIn(t, s.texts.dir)); name != "lost" && n != 2 {
				t.Errorf("%d texts are left", n)
			}
		})
	}
}

// A text whose file is taken away while the agent runs is written again with the next change.
func TestLargeTextsTakenAway(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	for _, text := range []string{largeText(), largeText(5), largeText(5)} {
		if err := errors.Join(os.RemoveAll(s.texts.dir), s.keeps(text)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s = opened(t, dir); s.Kept.Node != text {
			t.Fatalf("another text is read: %s", s.damage)
		}
	}
	s.Close()
}

// An earlier release kept texts whole, in the state and in the history.
func TestLargeTextsOfBefore(t *testing.T) {
	dir := t.TempDir()
	text := largeText(5)
	write := func(name string, v any) {
		written, err := json.Marshal(v)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), written, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("n.json", map[string]any{"file": "f", "node": text,
		"unconfirmed": map[string]any{"until": time.Now(), "node": largeText()}})
	write("n.history/000003.json", map[string]any{"number": 3, "node": text})
	s := opened(t, dir)
	defer s.Close()
	past, err := s.History.Text(3)
	if err != nil || past != text || s.Kept.Node != text ||
		s.Kept.Unconfirmed.Node != largeText() {
		t.Fatalf("error %v, or another text is read", err)
	}
	if err := s.keeps(largeText(6)); err != nil || s.History.List[1].Number != 4 {
		t.Errorf("error %v, the history is %+v", err, s.History.List)
	}
}
