package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit is a factor behind a number.
type unit struct {
	suffix string
	factor float64
}

// The units of tc(8) that the lab takes, the longest suffix first.
var (
	rateUnits = []unit{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}
	sizeUnits = []unit{{"kb", 1 << 10}, {"mb", 1 << 20}, {"b", 1}}
)

// parseRate reads bits per second: "100mbit".
func parseRate(text string) (uint64, error) {
	value, err := parseUnit(text, rateUnits)
	if err == nil && (value < 8 || value > 100e9) {
		err = fmt.Errorf("a rate lies between 8bit and 100gbit")
	}
	return uint64(value), err
}

// parseSize reads bytes: "64kb" is 65536.
func parseSize(text string) (uint32, error) {
	value, err := parseUnit(text, sizeUnits)
	if err == nil && (value < 1 || value > math.MaxInt32) {
		err = fmt.Errorf("a size lies between 1b and 2047mb")
	}
	return uint32(value), err
}

func parseUnit(text string, units []unit) (float64, error) {
	var known []string
	for _, u := range units {
		known = append(known, u.suffix)
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		if value, err := strconv.ParseFloat(number, 64); err == nil && value >= 0 && !math.IsInf(value, 0) {
			return value * u.factor, nil
		}
	}
	return 0, fmt.Errorf("write a number and one of %s", strings.Join(known, ", "))
}
