package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sextant/experiment"
)

const selectorKey = "000102030405060708090a0b0c0d0e0f"

func TestPathSessions(t *testing.T) {
	for _, s := range []struct {
		name  string
		lines []string
	}{
		{"path-disjoint", []string{
			"path disjoint zoo/Abilene Seattle New_York",
			"path disjoint zoo/Abilene Seattle New_York -o wide",
			"path disjoint zoo/Abilene Seattle New_York --paths 2",
			"path disjoint zoo/Abilene Seattle New_York --paths 2 --objective worst -o yaml",
			"path disjoint zoo/Abilene Seattle New_York --model paper",
			"path disjoint zoo/Abilene Seattle New_York -o name",
			"path disjoint zoo/Abilene Seattle New_York --no-proof --disjoint node",
			"path disjoint zoo/Abilene Seattle New_York --down Seattle>Denver",
			"path disjoint zoo/Abilene Seattle New_York --avoid 10 --sids 1",
			"path disjoint zoo-unary/Geant2012 _PT _GR --disjoint srlg --model ecmp",
			"path disjoint testdata/triangle.edges a c -o json",
		}},
		{"path-wrong", []string{
			"path disjoint zoo/Abilene Seattle", "path disjoint zoo/Abilene Seattle Paris",
			"path disjoint zoo/Abilene Seattle 3_Seattle",
			"path disjoint zoo/Abilene S New_York", "path disjoint zoo/Nowhere a b",
			"path disjoint zoo/Abilene Seattle New_York --model best",
			"path disjoint zoo/Abilene Seattle New_York --sids 0",
			"path disjoint zoo/Abilene Seattle New_York --disjoint all",
			"path disjoint zoo/Abilene Seattle New_York --down Seattle",
			"path disjoint zoo/Abilene Seattle New_York --avoid Seattle>New_York",
			"path disjoint zoo/Abilene Seattle New_York --avoid 1000",
			"path disjoint zoo/Abilene Seattle New_York --objective most",
			"path disjoint zoo/Abilene Seattle New_York --paths -1", "path",
		}},
		{"path-explain", []string{
			"path explain zoo/Abilene Seattle New_York", "path explain zoo/Abilene Atlanta Seattle",
			"path explain paper-table3/AS3967 Jose,+CA471 Clara,+CA444 --sids 2",
			"path explain zoo/Abilene Seattle New_York --disjoint node --down Seattle>Denver -o " +
				"json",
		}},
		{"path-segment", []string{
			"path segment zoo/Abilene Seattle Denver Kansas Houston",
			"path segment zoo/Abilene Seattle Denver Kansas Houston -o json",
			"path segment zoo/Abilene Seattle 10 Denver",
			"path segment zoo/Abilene Seattle 11 Denver", "path segment zoo/Abilene Seattle",
			"path segment zoo/Abilene Seattle New_York",
			"path segment zoo/Abilene Seattle Denver --model other",
		}},
		{"path-spf", []string{
			"path spf zoo/Abilene Seattle", "path spf zoo/Abilene Seattle New_York",
			"path spf zoo/Abilene Seattle New_York -o json",
			"path spf zoo/Abilene Seattle -o name",
			"path spf zoo/Abilene Seattle --down Seattle>Denver --down Seattle>Sunnyvale",
			"path spf zoo/Abilene Seattle Denver --down Seattle>Denver --down Seattle>Sunnyvale",
		}},
		{"path-matrix", []string{
			"path matrix zoo/Abilene zoo-unary/Abilene --paths 2",
			"path matrix zoo/Abilene --model paper --sids 1 --paths 0",
			"path matrix --set nonesuch", "path matrix zoo/Nowhere", "path matrix --model x",
			"path matrix zoo/Abilene --sids 0",
			"path matrix --set paper-table3 --largest 60 --model adjacency -o name",
		}},
		{"path-diversity", []string{
			"path diversity zoo-unary/Abilene",
			"path diversity zoo-unary/Abilene --between 1 -o json",
			"path diversity zoo-unary/Abilene --between 1 --through 3",
			"path diversity zoo-unary/Abilene --between x",
		}},
		{"path-selector", []string{
			"path encode 10.0.0.2:0 10.3.1.3:443 --fields source-port --radix 4 --hop 64:1 --hop " +
				"63:0 --count 3 --key 000102030405060708090a0b0c0d0e0f",
			"path decode 10.0.0.2:7298 10.3.1.3:443 --fields source-port --radix 4 --key " +
				"000102030405060708090a0b0c0d0e0f",
			"path encode [2001:db8::1]:5000 [2001:db8::2]:443 --fields flow-label --hop 64:3 -o " +
				"json --key 000102030405060708090a0b0c0d0e0f",
			"path encode [2001:db8::1]:5000 [2001:db8::2]:443 --fields flow-label --hop 64:3 -o " +
				"name --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:0 --radix 3 --modulo --hop 64:2 --key " +
				"000102030405060708090a0b0c0d0e0f",
			"path decode 10.0.0.2:1 10.3.1.3:2 --hops 3 --next-hops 5 --router 7 --cipher rc5 -o " +
				"json --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:443 --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:443 --hop 64 --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:443 --hop 64:1", "path encode 10.0.0.2 10.3.1.3:443 " +
				"--hop 64:1 --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 [::1]:443 --hop 64:1 --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:0 --radix 4 --hop 64:4 --key " +
				"000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:0 --radix 1 --hop 64:0 --key " +
				"000102030405060708090a0b0c0d0e0f", "path encode 10.0.0.2:0 10.3.1.3:0 --fields " +
				"x --hop 64:0 --key 000102030405060708090a0b0c0d0e0f",
			"path encode 10.0.0.2:0 10.3.1.3:0 --cipher x --hop 64:0 --key " +
				"000102030405060708090a0b0c0d0e0f", "path decode 10.0.0.2:1 10.3.1.3:2 --hops 65 " +
				"--key 000102030405060708090a0b0c0d0e0f",
			"path decode 10.0.0.2:1 10.3.1.3:2 --next-hops 0 --key " +
				"000102030405060708090a0b0c0d0e0f", "path decode 10.0.0.2:1 10.3.1.3:2 " +
				"--next-hops 17 --key 000102030405060708090a0b0c0d0e0f",
		}},
		{"path-probe", []string{
			"path probe 10.3.1.3 --next-hops 2,2",
			"path probe here --next-hops 2,2 --key " + selectorKey,
			"path probe 10.3.1.3 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 2,0 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 16,16,2 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 2 --count 0 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 2 --max-routers 64 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 2 --source ::1 --key " + selectorKey,
			"path probe 10.3.1.3 --next-hops 2,5 --radix 4 --key " + selectorKey,
		}},
		{"path-mptcp", []string{
			"path mptcp --next-hops 7",
			"path mptcp --next-hops 7 --fields flow-label --key " + selectorKey,
			"path mptcp --next-hops x --fields source-port --key " + selectorKey,
			"path mptcp --next-hops 3,3 --fields source-port --key " + selectorKey,
			"path mptcp --next-hops 7 --fields source-port --radix 4 --key " + selectorKey,
		}},
		{"path-run", []string{
			"path run --via 1,0 --fields source-port -- true",
			"path run --via 1 --fields none --key " + selectorKey + " -- true",
			"path run --via 1,x --fields source-port --key " + selectorKey + " -- true",
			"path run --via -,- --fields source-port --key " + selectorKey + " -- true",
			"path run --via 16 --fields source-port --key " + selectorKey + " -- true",
			"path run --via 1 --ports 9-7 --fields source-port --key " + selectorKey + " -- true",
			"path run --via 1 --source here --fields source-port --key " + selectorKey + " -- true",
			"path run --via 1 --fields source-port --key " + selectorKey,
		}},
		{"path-assign", []string{
			"path assign --fat-tree 4", "path assign testdata/flows.txt --fat-tree 4 -o json",
			"path assign --fat-tree 2 -o name",
			"path assign --fat-tree 3",
			"path assign testdata/flows.txt --fat-tree 4 --then testdata/flows-then.txt",
			"path assign testdata/flows.txt --fat-tree 4 --then testdata/nowhere",
			"path assign testdata/flows.txt --fat-tree 2",
			"path assign testdata/nowhere",
			"path assign testdata/path-assign.txt",
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			newWorld(t, fakeNode).script(s.name, s.lines)
		})
	}
}

// The drawing is XML and names both paths.
func TestPathDrawing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "paths.svg")
	newWorld(t, fakeNode).line("path disjoint zoo/Abilene Seattle New_York --draw " + file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(text)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	for _, part := range []string{"path 1: 7805, 0_New_York", "path 2: 10314"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the drawing does not have %q", part)
		}
	}
}

// Whatever the number of workers, the sums are the same.
func TestMatrixIsDeterministic(t *testing.T) {
	var sums []string
	for _, workers := range []string{"1", "3"} {
		out := newWorld(t, fakeNode).line("path matrix zoo/Geant2012 --paths 0 -o json --workers " +
			workers)
		var result matrixResult
		if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):strings.LastIndex(out, "}")+1]),
			&result); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, item := range result.Items {
			item.Seconds = 0
			line, err := json.Marshal(item)
			if err != nil {
				t.Fatal(err)
			}
			text += string(line) + "\n"
		}
		sums = append(sums, text)
	}
	if sums[0] != sums[1] || !strings.Contains(sums[0], `"pairs":1560`) {
		t.Errorf("one worker:\n%sthree:\n%s", sums[0], sums[1])
	}
}

func TestExperimentNames(t *testing.T) {
	w := newWorld(t, fakeNode)
	for line, want := range map[string]string{
		"experiment list": "\n\nSRLB (Desmouceaux et al., 2017)\n" +
			"NAME         LASTS   NEEDS ",
		"experiment list -o json": `"name": "disjoint-fig8"`,
		"experiment list -o name": "\ndisjoint-fig8\n",
		"experiment run": "missing NAME, or --all; known: " +
			"disjoint-table3, ",
		"experiment run nothing": `there is no experiment "nothing"; known: disjoint-table3, `,
		"experiment report disjoint-fig8 --folder testdata": "run it first: sextant experiment " +
			"run disjoint-fig8",
		"experiment report --folder " + t.TempDir(): "run one first",
	} {
		if out := w.line(line); !strings.Contains(out, want) {
			t.Errorf("%s\n%s\nhas no %q", line, out, want)
		}
	}
}

// TestExperimentListIsWhole: each experiment is in the table of a known paper, with a time that
// reads like the others', in 80 columns.
func TestExperimentListIsWhole(t *testing.T) {
	listed := newWorld(t, fakeNode).line("experiment list")
	lasts := regexp.MustCompile(`^[1-9][0-9]* (s|min|h)$`)
	for _, e := range experiments() {
		if !slices.Contains(experiment.Papers(), e.Paper) || !lasts.MatchString(e.Lasts) {
			t.Errorf("%s is of paper %q and lasts %q", e.Name, e.Paper, e.Lasts)
		}
		if !strings.Contains(listed, "\n"+e.Name+" ") {
			t.Errorf("%s is not listed", e.Name)
		}
	}
	for line := range strings.Lines(listed) {
		if len(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

// A quick experiment leaves a report, which is printed later.
func TestExperimentRun(t *testing.T) {
	folder := t.TempDir()
	w := newWorld(t, fakeNode)
	if out := w.line("experiment run disjoint-table3 disjoint-pairs --quick -q --folder " +
		folder); !strings.Contains(out, "[exit 0]") {
		t.Fatal(out)
	}
	for _, format := range []string{"json", "yaml"} {
		out := w.line("experiment run disjoint-table3 --quick -q -o " + format + " --folder " +
			folder)
		if !strings.Contains(out, "items") || !strings.Contains(out, "disjoint-table3") ||
			strings.Contains(out, "report.md") {
			t.Errorf("-o %s: %s", format, out)
		}
	}
	out := w.line("experiment report --folder " + folder)
	for _, part := range []string{"# disjoint-table3", "| AS3967 | adjacency | 4 |", "identical"} {
		if !strings.Contains(out, part) {
			t.Errorf("the report does not have %q:\n%s", part, out)
		}
	}
	for _, file := range []string{"disjoint-table3/table3.csv", "disjoint-table3/result.json",
		"disjoint-pairs/pairs.csv"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
}

// FuzzReadFlows reads files of flows as others write them.
func FuzzReadFlows(f *testing.F) {
	f.Add("0 15\n1 14\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		flows, err := readFlows(strings.NewReader(text), "file")
		if err == nil && len(flows) > strings.Count(text, "\n")+1 {
			t.Errorf("%d flows in %q", len(flows), text)
		}
	})
}
