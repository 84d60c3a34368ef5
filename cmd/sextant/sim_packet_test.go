package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const packetScenario = `
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}
links: {rate: 1Gbps, delay: 2us}
traffic: {pattern: random, sizes: web-server, load: 0.3}
duration: 5ms
`

// scenarioFile writes a scenario, with changes, into a folder of its own.
func scenarioFile(t *testing.T, changes ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	text := strings.NewReplacer(changes...).Replace(packetScenario)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// Files are the same, byte for byte, however many runs go on at once.
func TestSimPacketWorkers(t *testing.T) {
	file, dir := scenarioFile(t), t.TempDir()
	for _, workers := range []string{"1", "5"} {
		for _, format := range []string{"csv", "parquet"} {
			w := newWorld(t, fakeNode)
			if out := w.run("sim", "packet", file, "--compare", "ecmp,letflow", "--seeds", "3",
				"--workers", workers, "--format", format, "--out",
				filepath.Join(dir, workers+format)); !strings.Contains(out, "[exit 0]") {
				t.Fatal(out)
			}
		}
	}
	for format, names := range map[string][]string{"csv": {"flows.csv", "links.csv", "runs.csv",
		"sizes.csv"}, "parquet": {"flows.parquet", "links.parquet", "runs.parquet",
		"sizes.parquet"}} {
		one, many := filesIn(t, filepath.Join(dir, "1"+format)),
			filesIn(t, filepath.Join(dir, "5"+format))
		for _, name := range append(names, "times.svg", "sizes.svg", "links.svg",
			"reroutes.svg", "reordering.svg") {
			if one[name] == "" || one[name] != many[name] {
				t.Errorf("%s: %d bytes by one worker, %d by five", name, len(one[name]),
					len(many[name]))
			}
		}
		if len(one) != 9 {
			t.Errorf("%s: %d files", format, len(one))
		}
	}
}

// Of earlier runs no table or plot stays in the folder; files of others do.
func TestSimPacketFolder(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "sizes.txt")
	if err := os.WriteFile(mine, []byte("1000 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, fakeNode)
	endless := scenarioFile(t, "random, sizes: web-server, load: 0.3", "permutation")
	if out := w.run("sim", "packet", endless, "--out", dir); !strings.Contains(out, "[exit 0]") {
		t.Fatal(out)
	}
	before := filesIn(t, dir)
	if lines := strings.Split(before["hosts.csv"], "\n"); lines[0] != "scheme,seed,host,goodput" ||
		!strings.HasPrefix(lines[1], "ecmp,1,host0-0,0.") || before["goodput.svg"] == "" {
		t.Errorf("hosts.csv is\n%s", before["hosts.csv"])
	}
	if out := w.run("sim", "packet", scenarioFile(t), "--format", "parquet", "--out",
		dir); !strings.Contains(out, "[exit 0]") {
		t.Fatal(out)
	}
	var names []string
	for name := range filesIn(t, dir) {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "flows.parquet links.parquet links.svg "+
		"reordering.svg reroutes.svg runs.parquet sizes.parquet sizes.svg sizes.txt times.svg" {
		t.Errorf("the folder has %s", got)
	}
}

// What is wrong is said before anything runs: nothing is written.
func TestSimPacketRefuses(t *testing.T) {
	dir := t.TempDir()
	for wrong, complaint := range map[string]string{
		"--compare ecmp,luck": `"luck" is not known`, "--compare ecmp,ecmp": "ecmp twice",
		"--seeds -1": "--seeds -1", "--seeds 1000000000": "at most", "--workers 0": "at least 1",
		"--format xls": "csv or parquet", "--csv DIR/none/x.csv": "its folder",
		"--plot DIR/none/x.svg": "its folder", "--parquet DIR/x/y": "its folder",
		"--out FILE": "not a directory",
	} {
		w := newWorld(t, fakeNode)
		file := scenarioFile(t)
		words := strings.Fields(strings.NewReplacer("DIR", dir, "FILE", file).Replace(wrong))
		out := w.run(append([]string{"sim", "packet", file, "--csv",
			filepath.Join(dir, "runs.csv")}, words...)...)
		if !strings.Contains(out, complaint) || strings.Contains(out, "[exit 0]") ||
			strings.Contains(out, file+": "+file) {
			t.Errorf("%s: want %q in\n%s", wrong, complaint, out)
		}
	}
	if files := filesIn(t, dir); len(files) > 0 {
		t.Errorf("files were written: %v", files)
	}
}

// Columns without a flow of their kind have no number; flows that did not end are in view.
func TestSimPacketTable(t *testing.T) {
	w := newWorld(t, fakeNode)
	out := w.run("sim", "packet", scenarioFile(t, "web-server", "\"20000\""))
	lines := strings.Split(w.stdout.String(), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "FLOWS  UNFINISHED") {
		t.Fatal(out)
	}
	if column := strings.Index(lines[0], "LONG MEAN"); lines[1][column:column+1] != "-" {
		t.Error(out)
	}
	rates := scenarioFile(t, "\ntopology", "\nmode: flow\ntopology")
	out = w.run("sim", "packet", rates, "-o", "wide")
	if !strings.Contains(out, " 0          -          0        0 ") {
		t.Error(out)
	}
	if bytes.Contains(w.stderr.Bytes(), []byte("runs done")) {
		t.Error("progress without a terminal")
	}
}
