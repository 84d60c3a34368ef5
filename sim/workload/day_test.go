package workload_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/workload"
)

func TestDay(t *testing.T) {
	c := workload.DayConfig{Length: 240 * time.Second, Peak: 1000, Service: 10 * time.Millisecond,
		Static: time.Millisecond, Files: 2, Seed: 1}
	var pages, files, byHour [24]float64
	var sum time.Duration
	var last time.Duration
	day := workload.NewDay(c)
	for r, ok := day.Next(); ok; r, ok = day.Next() {
		if r.At < last || r.At >= c.Length {
			t.Fatalf("a request at %v after one at %v", r.At, last)
		}
		last = r.At
		hour := int(c.Hour(r.At))
		byHour[hour]++
		if r.Class == workload.Static {
			files[hour]++
			if r.Service != time.Millisecond {
				t.Fatalf("a file costs %v", r.Service)
			}
			continue
		}
		pages[hour]++
		sum += r.Service
	}
	total := func(of [24]float64) (n float64) {
		for _, v := range of {
			n += v
		}
		return n
	}
	if ratio := total(files) / total(pages); math.Abs(ratio-2) > 0.05 {
		t.Errorf("%.2f files per page, want 2", ratio)
	}
	if mean := sum.Seconds() / total(pages) * 1000; math.Abs(mean-10) > 0.2 {
		t.Errorf("a page costs %.2f ms, want 10", mean)
	}
	// An hour lasts 10 s.
	for hour, want := range map[int]float64{7: 0.45, 8: 0.45, 19: 1, 20: 1} {
		if got := pages[hour] / 10 / c.Peak; math.Abs(got-want) > 0.03 {
			t.Errorf("hour %d: %.2f of the peak, want %.2f", hour, got, want)
		}
	}
}
