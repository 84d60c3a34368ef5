package main

import (
	"fmt"
	"strconv"
	"time"
)

// count writes a number of things.
func count[T int | uint8 | uint16 | uint32 | uint64](n T) string {
	return strconv.FormatUint(uint64(n), 10)
}

// plural writes a number of things with their name.
func plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// share writes a part of a whole as a percentage.
func share[T int | uint64](part, whole T) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// rate writes a difference of counters per second, with a unit of the thousands.
func rate(before, after uint64, interval time.Duration) string {
	return scaled(perSecond(before, after, interval))
}

// perSecond is 0 where a counter began anew.
func perSecond(before, after uint64, interval time.Duration) float64 {
	if after < before || interval <= 0 {
		return 0
	}
	return float64(after-before) / interval.Seconds()
}

// scaled writes a number with three digits and k, M or G.
func scaled(n float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if n < 999.5 {
			break
		}
		n, unit = n/1000, u
	}
	switch {
	case unit == "" || n >= 99.95:
		return fmt.Sprintf("%.0f%s", n, unit)
	case n >= 9.995:
		return fmt.Sprintf("%.1f%s", n, unit)
	default:
		return fmt.Sprintf("%.2f%s", n, unit)
	}
}

func timeText(t time.Time) string { return t.Format(time.RFC3339) }

// age writes how long something has lasted, in its two largest units.
func age(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", seconds/60, seconds%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", seconds/3600, seconds%3600/60)
	default:
		return fmt.Sprintf("%dd%dh", seconds/86400, seconds%86400/3600)
	}
}
