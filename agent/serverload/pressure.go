package serverload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pressure is the kernel's pressure stall information of the CPUs: how much of the last second some
// task could have run and did not, in percent.
type pressure struct {
	path    string
	samples []sample // of about the last second, oldest first
}

// sample is the whole time that tasks have waited so far.
type sample struct {
	at     time.Time
	waited time.Duration
}

// pressureSpan is the time over which is looked back.
const pressureSpan = time.Second

// newPressure watches a cgroup, or with "" the whole machine.
func newPressure(cgroup string) *pressure {
	if cgroup == "" {
		return &pressure{path: "/proc/pressure/cpu"}
	}
	return &pressure{path: filepath.Join(cgroup, "cpu.pressure")}
}

// busy returns percent. The first answer is 0: there is nothing to compare with.
func (p *pressure) busy(context.Context) (int, error) {
	text, err := os.ReadFile(p.path)
	if err != nil {
		return 0, fmt.Errorf("read the pressure on the CPUs: %w; the kernel may be built without "+
			"PSI, or need psi=1 to boot", err)
	}
	waited, err := parsePressure(string(text))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", p.path, err)
	}
	return p.since(sample{time.Now(), waited}), nil
}

// since compares with the newest sample that is a whole span old, or else with the oldest.
func (p *pressure) since(now sample) int {
	p.samples = append(p.samples, now)
	for len(p.samples) > 2 && now.at.Sub(p.samples[1].at) >= pressureSpan {
		p.samples = p.samples[1:]
	}
	passed := now.at.Sub(p.samples[0].at)
	if passed <= 0 {
		return 0
	}
	return int(min(max(100*(now.waited-p.samples[0].waited)/passed, 0), 100))
}

// parsePressure finds the total of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345",
// microseconds.
func parsePressure(text string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, field := range fields[1:] {
			if value, is := strings.CutPrefix(field, "total="); is {
				total, err := strconv.ParseInt(value, 10, 53)
				if err != nil || total < 0 {
					return 0, fmt.Errorf("the total %q is no number of microseconds", value)
				}
				return time.Duration(total) * time.Microsecond, nil
			}
		}
	}
	return 0, fmt.Errorf(`there is no line "some" with a total`)
}
