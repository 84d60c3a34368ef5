package datapath

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

var (
	benchAgainst = flag.String("against", "",
		"test binary of another build, whose passes alternate with this one's")
	benchServe = flag.Bool("serve", false, "measure the rows that are named on standard input")
)

// benchAnswers is the descriptor to which BenchmarkServe writes: standard output has what the
// testing package prints.
const benchAnswers = 3

// BenchmarkServe is the other build of BenchmarkPrograms: it reads names of rows and answers each
// with its cost, or null if it has no such row.
func BenchmarkServe(b *testing.B) {
	if !*benchServe {
		return // it is for another build's bench
	}
	w := newWorld(b)
	oneCPU(b)
	driver := newBenchDriver(b, w.near)
	rows := driver.programRows(b, w)
	out := os.NewFile(benchAnswers, "answers")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		at := slices.IndexFunc(rows, func(r benchRow) bool { return r.name == in.Text() })
		var answer *cost
		if at >= 0 {
			c := driver.measure(b, rows[at])
			answer = &c
		}
		must(b, json.NewEncoder(out).Encode(answer))
	}
}

// otherBuild is another build of the bench, in a process of its own.
type otherBuild struct {
	requests io.Writer
	answers  *json.Decoder
}

// startOther starts the build that -against names; nil without one.
func startOther(t testing.TB) *otherBuild {
	t.Helper()
	if *benchAgainst == "" {
		return nil
	}
	read, write, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { read.Close() })
	process := exec.Command(*benchAgainst, "-test.run", "^$", "-test.bench", "^BenchmarkServe$",
		"-test.benchtime", "1x", "-serve", "-repeat", strconv.Itoa(*benchRepeat), "-rows",
		*benchOnly)
	var said bytes.Buffer
	process.ExtraFiles, process.Stderr, process.Stdout = []*os.File{write}, &said, &said
	requests, err := process.StdinPipe()
	must(t, err)
	must(t, process.Start())
	write.Close()
	t.Cleanup(func() {
		if err := errors.Join(requests.Close(), process.Wait()); err != nil {
			t.Errorf("the other build: %v: %s", err, &said)
		}
	})
	return &otherBuild{requests: requests, answers: json.NewDecoder(read)}
}

// measure returns what a row costs in the other build; nil without one, or if it has no such row.
func (o *otherBuild) measure(t testing.TB, r benchRow) *cost {
	t.Helper()
	if o == nil {
		return nil
	}
	_, err := fmt.Fprintln(o.requests, r.name)
	must(t, err)
	var c *cost
	must(t, o.answers.Decode(&c))
	return c
}
