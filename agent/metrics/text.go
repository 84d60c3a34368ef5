package metrics

import (
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"sextant/agent/monitoring"
)

// flushBytes is how much text is written at once.
const flushBytes = 32 << 10

// textWriter writes metrics in Prometheus' text format, as the client library does.
type textWriter struct {
	out  io.Writer
	line []byte // what is not written yet
	err  error  // the first one of out
}

// writeText writes metrics of the client library and wide ones, in the order of their names.
func writeText(out io.Writer, others []*dto.MetricFamily, p page) error {
	t := textWriter{out: out}
	for _, w := range p.sorted() {
		for ; len(others) > 0 && others[0].GetName() < w.Name; others = others[1:] {
			t.library(others[0])
		}
		t.wide(w, p[w])
	}
	for _, family := range others {
		t.library(family)
	}
	t.flush()
	return t.err
}

func (t *textWriter) library(family *dto.MetricFamily) {
	if t.flush(); t.err == nil {
		_, t.err = expfmt.MetricFamilyToText(t.out, family)
	}
}

func (t *textWriter) flush() {
	if t.err == nil && len(t.line) > 0 {
		_, t.err = t.out.Write(t.line)
	}
	t.line = t.line[:0]
}

func (t *textWriter) wide(w *wide, list []series) {
	t.add("# HELP ", w.Name, " ", helpEscapes.Replace(w.Help), "\n")
	t.add("# TYPE ", w.Name, " ", string(w.Kind), "\n")
	labels := slices.Sorted(slices.Values(w.Labels))
	for i := range list {
		if w.Kind == monitoring.Histogram {
			t.histogram(w, labels, &list[i])
		} else {
			t.sample(w.Name, "", labels, &list[i], "", list[i].value)
		}
		if len(t.line) > flushBytes {
			t.flush()
		}
	}
}

func (t *textWriter) histogram(w *wide, labels []string, s *series) {
	buckets := s.durations.Buckets()
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		t.sample(w.Name, "_bucket", labels, s, float(bound), float64(buckets[bound]))
	}
	t.sample(w.Name, "_bucket", labels, s, "+Inf", float64(s.durations.Count))
	t.sample(w.Name, "_sum", labels, s, "", s.durations.SumSeconds)
	t.sample(w.Name, "_count", labels, s, "", float64(s.durations.Count))
}

// sample adds a line; bound is that of a bucket, or "".
func (t *textWriter) sample(name, suffix string, labels []string, s *series, bound string,
	value float64) {
	t.add(name, suffix)
	before := "{"
	for i, label := range labels {
		t.add(before, label, `="`)
		t.label(s.labels[i])
		t.add(`"`)
		before = ","
	}
	if bound != "" {
		t.add(`,le="`, bound, `"`)
	}
	t.add("} ")
	t.line = append(appendFloat(t.line, value), '\n')
}

func (t *textWriter) add(parts ...string) {
	for _, part := range parts {
		t.line = append(t.line, part...)
	}
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (t *textWriter) label(value string) {
	if strings.ContainsAny(value, "\\\n\"") {
		value = labelEscapes.Replace(value)
	}
	t.add(value)
}

func float(f float64) string { return string(appendFloat(nil, f)) }

func appendFloat(b []byte, f float64) []byte {
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e6:
		return strconv.AppendInt(b, int64(f), 10) // what follows says the same, and takes longer
	case math.IsInf(f, +1):
		return append(b, "+Inf"...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}
