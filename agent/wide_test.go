package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// BenchmarkWide is an edge with as many services as a cloud has: its start, one change by the API
// and by a whole node file, lists, 100 and 1,000 services that change at once, and half of the
// services that go at once. The agent runs in this process.
func BenchmarkWide(b *testing.B) {
	for _, size := range []struct {
		name               string
		services, backends int
		most               string // that the file says a service has; "": nothing
	}{{"1000x10", 1000, 10, ""}, {"10000x10", 10000, 10, ""},
		{"10000x10-sized", 10000, 10, "      maxBackends: 10\n"},
		{"10000x10-weighted", 10000, 10, ""}, {"1000x10-sites", 1000, 10, ""},
		{"10000x10-sites", 10000, 10, ""},
		{"1x10000", 1, 10000, "      maxBackends: 10000\n"}} {
		b.Run(size.name, func(b *testing.B) {
			const list = "      backends:\n"
			text := strings.ReplaceAll(manyServices(size.services, size.backends), list,
				size.most+list)
			if strings.HasSuffix(size.name, "-weighted") {
				text = strings.ReplaceAll(text, "{name: b1, ", "{name: b1, weight: 3, ")
			}
			if strings.HasSuffix(size.name, "-sites") {
				text = strings.Replace(text, "edge:\n", "edge:\n  site: s0\n", 1)
				for i := range size.backends {
					name := fmt.Sprintf("{name: b%d, ", i)
					text = strings.ReplaceAll(text, name, name+fmt.Sprintf("site: s%d, ", i%3))
				}
			}
			wide(b, text, size.services)
		})
	}
}

func wide(b *testing.B, node string, services int) {
	m := newMachine(b)
	text := m.text(node)
	step := func(name string, do func()) {
		at := time.Now()
		do()
		b.ReportMetric(float64(time.Since(at).Microseconds())/1000, name+"-ms")
	}
	before := heap()
	var r *running
	step("parse", func() { m.parse(text) })
	step("start", func() { r = m.start(text) })
	b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MiB")
	ctx := b.Context()
	for i, name := range []string{"first-drain", "drain"} {
		step(name, func() {
			state := config.Draining
			_, err := r.PutBackend(ctx, api.Update, "s0", fmt.Sprintf("b%d", i),
				api.BackendSpec{State: &state})
			must(b, err)
		})
	}
	changed := strings.Replace(text, "{name: b0, ", "{name: b0, weight: 2, ", 1)
	step("apply", func() {
		_, err := r.apply(changed, false)
		must(b, err)
	})
	step("status", func() {
		_, err := r.Status(ctx)
		must(b, err)
	})
	step("list", func() {
		_, err := r.Services(ctx, "", "")
		must(b, err)
	})
	waits(b, r)
	step("metrics", func() {
		_, err := r.MetricsText(ctx)
		must(b, err)
	})
	r.stop()
	step("restart", func() { r = m.start(text) })
	step("another-size", func() { // of a table than all others have
		_, err := r.apply(text+"    - {name: other, vip: \"2001:db8:80::81\", port: 1, "+
			"maxBackends: 200, backends: [{name: b0, sid: \"fcbb:bb00:1::\"}]}\n", false)
		must(b, err)
	})
	for _, many := range []int{100, 1000} {
		if many > services {
			break
		}
		step(fmt.Sprintf("%d-change", many), func() {
			_, err := r.apply(strings.Replace(text, "{name: b0, ",
				fmt.Sprintf("{name: b0, weight: %d, ", many), many), false)
			must(b, err)
		})
	}
	if half, _, many := strings.Cut(text, fmt.Sprintf("    - name: s%d\n", services/2)); many &&
		services > 1 {
		step("half-goes", func() {
			_, err := r.apply(half, false)
			must(b, err)
		})
	}
	r.stop()
	b.ReportMetric(0, "ns/op")
}

// waits reports the longest time that another question waits while all services are listed.
func waits(b *testing.B, r *running) {
	listed := make(chan error, 1)
	go func() {
		_, err := r.Services(b.Context(), "", "")
		listed <- err
	}()
	var longest time.Duration
	for {
		select {
		case err := <-listed:
			must(b, err)
			b.ReportMetric(float64(longest.Microseconds())/1000, "status-beside-list-ms")
			return
		default:
		}
		at := time.Now()
		_, err := r.Status(b.Context())
		must(b, err)
		longest = max(longest, time.Since(at))
	}
}

// BenchmarkRestart is an edge and host that loads its programs, and one that takes them over. The
// agent runs in this process.
func BenchmarkRestart(b *testing.B) {
	var loads, takes time.Duration
	runs := 0
	for b.Loop() {
		m := newMachine(b)
		for _, took := range []*time.Duration{&loads, &takes} {
			at := time.Now()
			r := m.start(nodeText)
			*took += time.Since(at)
			r.stop()
		}
		must(b, m.unload())
		runs++
	}
	b.ReportMetric(float64(loads.Microseconds())/1000/float64(runs), "load-ms")
	b.ReportMetric(float64(takes.Microseconds())/1000/float64(runs), "take-ms")
	b.ReportMetric(0, "ns/op")
}
