package scenario

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"sextant/sim/packet"
)

// files are what a scenario may read.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	return []byte(text), nil
}

// A run of the flows that another run had is the same run, in whatever order they are written.
func TestTrace(t *testing.T) {
	drawn := run(t, strings.Replace(small, "load: 0.3", "load: 0.3, until: 10ms", 1), "ecmp", 1)
	hosts := []string{"host0-0", "host0-1", "host0-2", "host1-0", "host1-1", "host1-2"}
	var lines strings.Builder // in the order of their ends
	lines.WriteString("scheme,start_s,from,to,bytes\n")
	for _, f := range drawn.Ended {
		fmt.Fprintf(&lines, "ecmp,%d.%012d,%s,%s,%d\n", f.Flow.Start/packet.Second,
			f.Flow.Start%packet.Second, hosts[f.Flow.Src], hosts[f.Flow.Dst], f.Flow.Bytes)
	}
	text := strings.Replace(small, "pattern: random, sizes: 20000, load: 0.3",
		"pattern: trace, trace: flows.csv", 1)
	played := runWith(t, text, files{"flows.csv": lines.String()}, "ecmp", 1)
	if drawn.Flows < 100 || drawn.Unfinished > 0 {
		t.Fatalf("%d flows ended and %d did not: all are to be in the trace", drawn.Flows,
			drawn.Unfinished)
	}
	if played.Flows != drawn.Flows || played.Hops != drawn.Hops ||
		math.Float64bits(played.MeanMs) != math.Float64bits(drawn.MeanMs) {
		t.Errorf("%d flows in %g ms, %d hops; drawn: %d in %g ms, %d hops", played.Flows,
			played.MeanMs, played.Hops, drawn.Flows, drawn.MeanMs, drawn.Hops)
	}
}

// Sizes come from files too.
func TestSizesOfFile(t *testing.T) {
	text := strings.Replace(small, "sizes: 20000", "sizes: ./of-mine.txt", 1)
	c, err := Parse([]byte(text), files{"./of-mine.txt": "# bytes, part\n1000 0\n3000 1\n"}.read)
	if err != nil || c.Traffic.drawn.Mean() != 2000 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Parse([]byte(text), files{}.read); err == nil ||
		!strings.Contains(err.Error(), "./of-mine.txt") {
		t.Errorf("without the file: %v", err)
	}
}

// Bad traces are refused, by line.
func TestTraceRefused(t *testing.T) {
	for text, complaint := range map[string]string{
		"":                                        "first line",
		"start_s,from,to\n":                       "no column bytes",
		"start_s,from,to,bytes\nx,a,b,1\n":        "line 2: start_s",
		"start_s,from,to,bytes\n-1,a,b,1\n":       "line 2: start_s",
		"start_s,from,to,bytes\nNaN,a,b,1\n":      "line 2: start_s",
		"start_s,from,to,bytes\n1e30,a,b,1\n":     "line 2: start_s",
		"start_s,from,to,bytes\n0,a,b,0\n":        "line 2: bytes",
		"start_s,from,to,bytes\n0,a,b,1\n0,a,a,1": "line 3: the flow leads",
		"start_s,from,to,bytes\n0,a,b\n":          "wrong number of fields",
		"seed,start_s,from,to,bytes\n1,0,a,b,1\n1,0,b,a,1\n2,0,a,b,1": "line 4: flows of several " +
			"runs",
	} {
		if _, err := parseTrace([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: %v, want it to say %q", text, err, complaint)
		}
	}
	text := strings.Replace(small, "pattern: random, sizes: 20000, load: 0.3",
		"pattern: trace, trace: flows.csv", 1)
	c, g := parsed(t, text, files{
		"flows.csv": "start_s,from,to,bytes\n0,host0-0,nobody,1\n"})
	if _, err := c.Run(g, "ecmp", 1, func(float64) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "nobody") {
		t.Errorf("a host that is not there: %v", err)
	}
}

// What parseTrace takes can be played: in order, and nothing from a host to itself.
func FuzzTrace(f *testing.F) {
	f.Add("start_s,from,to,bytes\n0.5,a,b,100\n0.25,b,a,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		flows, err := parseTrace([]byte(text))
		for i, one := range flows {
			if err != nil || one.start < 0 || one.bytes < 1 || one.from == one.to ||
				i > 0 && one.start < flows[i-1].start {
				t.Errorf("%q is taken as %+v, %v", text, flows, err)
			}
		}
	})
}
