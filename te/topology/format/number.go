package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sextant/te/topology"
)

// whole reads a whole number from least to most. "10.0" and "1e3" are whole.
func whole(what, text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, floatErr := strconv.ParseFloat(text, 64)
		switch {
		case floatErr != nil && !math.IsInf(f, 0):
			return 0, fmt.Errorf("%s %q is no number; write a whole number from %d to %d", what,
				text, least, most)
		case math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) > 1<<53:
			return 0, fmt.Errorf("%s %s is out of range; write a whole number from %d to %d", what,
				text, least, most)
		case f != math.Trunc(f):
			return 0, fmt.Errorf("%s %s is no whole number; round it, or choose a smaller unit",
				what, text)
		}
		n = int64(f)
	}
	if n < least || n > most {
		return 0, fmt.Errorf("%s %s is out of range; write a whole number from %d to %d", what,
			text, least, most)
	}
	return n, nil
}

func parseWeight(text string) (uint32, error) {
	n, err := whole("weight", text, 1, math.MaxUint32)
	return uint32(n), err
}

func parseDelay(text string) (int64, error) { return whole("delay", text, 0, topology.MaxDelay) }

// parseKbps reads a capacity in kbit/s.
func parseKbps(text string) (int64, error) {
	return whole("capacity", text, 0, topology.MaxCapacityKbps)
}

// kbpsFrom makes a capacity of a number of units of so many bit/s, rounded to kbit/s, and up if it
// is less than one.
func kbpsFrom(text string, bits float64) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	kbps := n * bits / 1000
	if err != nil || !(kbps >= 0 && kbps <= topology.MaxCapacityKbps) {
		return 0, fmt.Errorf("capacity %q is no number from 0 to %.0f", text,
			topology.MaxCapacityKbps*1000/bits)
	}
	if kbps > 0 && kbps < 1 {
		return 1, nil
	}
	return int64(math.Round(kbps)), nil
}

// coordinate reads a place's coordinate; what is infinite or no number is refused.
func coordinate(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) > 1e9 {
		return 0, fmt.Errorf("coordinate %q is no number; write degrees, or 0.0 0.0 for unknown",
			text)
	}
	return f, nil
}

func point(x, y string) (p topology.Point, err error) {
	if p.Longitude, err = coordinate(x); err == nil {
		p.Latitude, err = coordinate(y)
	}
	return p, err
}

func decimal(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// The units of delay that files state.
var delayUnits = []struct {
	name string
	unit time.Duration
}{{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}}

// ParseDelayUnit reads ns, us, ms or s, and "" or "none" as unknown, which is 0.
func ParseDelayUnit(text string) (time.Duration, error) {
	if text == "" || text == "none" {
		return 0, nil
	}
	for _, u := range delayUnits {
		if u.name == text {
			return u.unit, nil
		}
	}
	return 0, fmt.Errorf("unknown unit of delay %q; write ns, us, ms or s", text)
}

// DelayUnitName is the unit as [ParseDelayUnit] reads it: "none" for 0.
func DelayUnitName(unit time.Duration) string {
	for _, u := range delayUnits {
		if u.unit == unit {
			return u.name
		}
	}
	if unit == 0 {
		return "none"
	}
	return unit.String()
}
