package replicate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWatch(t *testing.T) {
	w := NewWatch(3 * time.Second)
	steps := []struct {
		at   time.Duration
		s    Sample
		want []Finding
	}{
		{0, Sample{100, 100, []uint64{100, 100}}, nil},
		{time.Second, Sample{200, 199, []uint64{200, 199}}, nil},
		{2 * time.Second, Sample{300, 199, []uint64{300, 199}}, nil},
		{4 * time.Second, Sample{500, 199, []uint64{500, 199}}, []Finding{{Path: 1, Silent: 3 * time.Second}}},
		{5 * time.Second, Sample{600, 200, []uint64{600, 200}}, nil},
		{60 * time.Second, Sample{600, 200, []uint64{600, 200}}, nil}, // the flow pauses
		{61 * time.Second, Sample{700, 300, []uint64{700, 300}}, nil},
		{62 * time.Second, Sample{800, 600, []uint64{900, 500}}, []Finding{{Path: -1, Excess: 200}}},
		{63 * time.Second, Sample{10, 10, []uint64{10, 10}}, nil}, // counters began anew
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, w.Observe(step.at, step.s)); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", step.at, diff)
		}
	}
	if got, want := (Finding{Path: 1, Silent: 3 * time.Second}).String(), "path 2 has been silent for 3s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
