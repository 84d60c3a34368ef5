package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuzzScript: a target fails by what an input has found, not by the end of its time, which Go
// 1.26 takes for a failure now and then.
func TestFuzzScript(t *testing.T) {
	const failed, deadline = "--- FAIL: FuzzIt (10.65s)\n", "    context deadline exceeded\n"
	for name, c := range map[string]struct {
		says  string
		fails bool
	}{
		"end of the time": {failed + deadline + "FAIL\n", false},
		"an input": {failed + "    --- FAIL: FuzzIt (0.00s)\n        it_test.go:9: 1 is 2\n" +
			"    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n", true},
		"an input at the end of the time": {failed + deadline + "        it_test.go:9: 1 is 2\n" +
			"FAIL\n", true},
		"a target that hangs": {failed + "    fuzzing process hung or terminated unexpectedly\n" +
			deadline, true},
		"a test that does not compile": {"FAIL\tsextant/it [build failed]\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "it_test.go", "package it\n\nfunc FuzzIt(f *testing.F) {}\n")
			write(t, dir, "says", c.says)
			write(t, dir, "go", "#!/bin/sh\ncat '"+dir+"/says'\nexit 1\n")
			script := exec.Command("../../scripts/fuzz.sh")
			script.Env = append(os.Environ(), "PACKAGE="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := script.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
				t.Errorf("make fuzz: %v, must fail: %v, and tell %q\n%s", err, c.fails, c.says, out)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
