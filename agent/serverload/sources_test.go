package serverload

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/config"
	"sextant/lb/acceptance"
)

// codeOf is a code block of a document.
func codeOf(t *testing.T, document, language string) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("%s has no code in %s", document, language)
	}
	return code
}

// The examples in the documentation write what is read.
func TestMemoryExamples(t *testing.T) {
	for _, test := range []struct {
		language, tool, ending string
		compile                func(source, program string) *exec.Cmd
	}{
		{"python", "python3", "\nimport sys\nLoad(sys.argv[1]).set(4711)\n", nil},
		{"c", "cc", "\nint main(int n, char **args) { _Atomic uint64_t *load = load_open(args[n " +
			"- 1]); *load = 4711; return 0; }\n",
			func(source, program string) *exec.Cmd {
				return exec.Command("cc", "-Wall", "-Werror", "-o", program, source)
			}},
		{"go", "go", "\nfunc main() { busy, err := openLoad(os.Args[1]); if err != nil { " +
			"panic(err) }; busy.Store(4710); busy.Add(1) }\n",
			func(source, program string) *exec.Cmd {
				return exec.Command("go", "build", "-o", program, source)
			}},
	} {
		t.Run(test.language, func(t *testing.T) {
			tool, err := exec.LookPath(test.tool)
			if err != nil {
				t.Fatalf("%v: scripts/deps.sh test installs it", err)
			}
			dir := t.TempDir()
			source, program, file := filepath.Join(dir, "example."+test.language),
				filepath.Join(dir, "example"), filepath.Join(dir, "load")
			if err := os.WriteFile(source,
				[]byte(codeOf(t, "../../docs/howto/load.md", test.language)+test.ending),
				0o644); err != nil {
				t.Fatal(err)
			}
			run := exec.Command(tool, source, file)
			if test.compile != nil {
				if out, err := test.compile(source, program).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				run = exec.Command(program, file)
			}
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n, err := (memory{file}).busy(t.Context()); n != 4711 || err != nil {
				t.Errorf("%d busy, %v; want 4711", n, err)
			}
		})
	}
}

// What a gauge says is what is read, up to the number that stands for full; a new gauge on the file
// begins at 0.
func TestGauge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load")
	for range 2 {
		gauge, err := OpenGauge(file)
		if err != nil {
			t.Fatal(err)
		}
		check := func(want int) {
			t.Helper()
			if n, err := (memory{file}).busy(t.Context()); n != want || err != nil {
				t.Errorf("%d busy, %v; want %d", n, err, want)
			}
		}
		check(0)
		for said, want := range map[int]int{-1: 0, 7: 7, acceptance.Full: acceptance.Full,
			acceptance.Full + 1: acceptance.Full} {
			gauge.Set(said)
			check(want)
		}
		gauge.Set(3)
		if err := gauge.Close(); err != nil {
			t.Error(err)
		}
		check(3)
	}
	if _, err := OpenGauge(filepath.Join(file, "below")); err == nil {
		t.Error("a gauge is opened below a file")
	}
}

func TestMemoryRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load")
	if _, err := (memory{file}).busy(t.Context()); err == nil || !strings.Contains(err.Error(),
		"does the application run?") {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{
		"":         "does not begin with SXTLOAD1",
		"SXTLOAD1": "", // and zeros, as after a truncation
		"SXTLOAD2" + string(binary.NativeEndian.AppendUint64(nil,
			1)): "does not begin with SXTLOAD1",
		"SXTLOAD1" + string(binary.NativeEndian.AppendUint64(nil, 1<<31)): "more than can be busy",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := (memory{file}).busy(t.Context())
		if want == "" && (err != nil || n != 0) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %d, %v; want %q", text, n, err, want)
		}
	}
}

func TestParsePressure(t *testing.T) {
	const good = "some avg10=1.50 avg60=0.00 avg300=0.00 total=10542473057\nfull avg10=0.00 " +
		"avg60=0.00 avg300=0.00 total=7\n"
	if waited, err := parsePressure(good); err != nil || waited != 10542473057*time.Microsecond {
		t.Errorf("waited %v, %v", waited, err)
	}
	for text, want := range map[string]string{
		"": "no line", "full total=3": "no line", "some avg10=0": "no line",
		"some total=x": "no number", "some total=-1": "no number",
	} {
		if _, err := parsePressure(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParsePressure(f *testing.F) {
	f.Add("some avg10=1.50 avg60=0.00 avg300=0.00 total=10542473057\n")
	f.Fuzz(func(t *testing.T, text string) {
		if waited, err := parsePressure(text); err == nil && waited < 0 {
			t.Errorf("%q: waited %v", text, waited)
		}
	})
}

func FuzzParseMemory(f *testing.F) {
	f.Add([]byte("SXTLOAD1\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if n, err := parseMemory(content); err == nil && n < 0 {
			t.Errorf("%x: %d", content, n)
		}
	})
}

// Percent of the last second, whatever was before.
func TestPressureLooksBack(t *testing.T) {
	p, start := &pressure{}, time.Unix(1000, 0)
	at := func(seconds, waited float64) int {
		return p.since(sample{start.Add(time.Duration(seconds * float64(time.Second))),
			time.Duration(waited * float64(time.Second))})
	}
	for _, step := range []struct {
		seconds, waited float64
		want            int
	}{
		{0, 100, 0}, {0.5, 100.25, 50}, {1, 100.5, 50}, {1.5, 101, 75}, {2, 101.5, 100},
		{2.5, 101.5, 50}, {3, 101.5, 0}, {60, 101.5, 0}, {61, 103, 100},
	} {
		if got := at(step.seconds, step.waited); got != step.want {
			t.Errorf("after %v s: %d percent, want %d", step.seconds, got, step.want)
		}
	}
	if len(p.samples) > 3 {
		t.Errorf("%d samples are kept", len(p.samples))
	}
}

// The kernel's own files are read, if there are any.
func TestPressureOfThisMachine(t *testing.T) {
	s, err := open(config.Load{Kind: config.LoadPressure})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.busy(t.Context())
	if _, missing := os.Stat("/proc/pressure/cpu"); missing != nil {
		if err == nil || !strings.Contains(err.Error(), "PSI") {
			t.Errorf("no PSI: %v", err)
		}
	} else if err != nil || n != 0 {
		t.Errorf("the first answer is %d, %v", n, err)
	}
	s, _ = open(config.Load{Kind: config.LoadPressure, Target: "/sys/fs/cgroup/none"})
	if _, err := s.busy(t.Context()); err == nil {
		t.Error("a cgroup that is not there has a pressure")
	}
}
