package netem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Keys are what Set knows, in the order of Describe.
var Keys = []string{"delay", "jitter", "loss", "lossBurst", "duplicate", "reorder", "rate", "burst",
	"queue"}

// longest bounds delays, so that sums of them stay far from overflow.
const longest = time.Hour

// Set changes one quantity of a profile from text: "delay" "10ms", "loss" "5%", "rate" "100mbit",
// "queue" "100 packets" or "20ms". The error says what is wanted.
func (p *Profile) Set(key, text string) (err error) {
	text = strings.TrimSpace(text)
	switch key {
	case "delay":
		p.Delay, err = parseTime(text)
	case "jitter":
		p.Jitter, err = parseTime(text)
	case "loss":
		p.Loss, err = parseShare(text)
	case "lossBurst":
		p.LossBurst, err = parseBurst(text)
	case "duplicate":
		p.Duplicate, err = parseShare(text)
	case "reorder":
		p.Reorder, err = parseShare(text)
	case "rate":
		p.RateBits, err = ParseRate(text)
	case "burst":
		p.BurstBytes, err = ParseSize(text)
	case "queue":
		p.QueuePackets, p.QueueTime, err = parseQueue(text)
	default:
		err = fmt.Errorf("there is no %q; write one of %s", key, strings.Join(Keys, ", "))
	}
	return err
}

// Fault says what is wrong between the quantities of a profile, and what would mend it; "" if
// nothing.
func (p Profile) Fault() (text, mend string) {
	switch {
	case p.Jitter > p.Delay:
		return fmt.Sprintf("the jitter of %s is more than the delay of %s", p.Jitter, p.Delay),
			"make the delay as long at least"
	case p.Reorder > 0 && p.Delay == 0:
		return "packets that skip the delay overtake nothing without one", "add a delay"
	case p.LossBurst > 1 && p.Loss == 0:
		return "a burst of losses belongs to a loss", "add a loss"
	case p.LossBurst > 1 && p.Loss > p.LossBurst/(p.LossBurst+1):
		return "so many losses are longer in a row", fmt.Sprintf("make lossBurst %.1f at least",
			p.Loss/(1-p.Loss))
	case p.RateBits == 0 && (p.BurstBytes > 0 || p.QueuePackets > 0 || p.QueueTime > 0):
		return "burst and queue belong to a rate", "add a rate"
	}
	return "", ""
}

// String describes the profile in words of Set; "-" if it passes everything.
func (p Profile) String() string {
	var words []string
	add := func(set bool, format string, args ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(p.Cut, "cut")
	add(p.Delay > 0, "delay %s", p.Delay)
	add(p.Jitter > 0, "jitter %s", p.Jitter)
	add(p.Loss > 0, "loss %s%%", number(100*p.Loss))
	add(p.LossBurst > 1, "lossBurst %s", number(p.LossBurst))
	add(p.Duplicate > 0, "duplicate %s%%", number(100*p.Duplicate))
	add(p.Reorder > 0, "reorder %s%%", number(100*p.Reorder))
	add(p.RateBits > 0, "rate %s", rateText(p.RateBits))
	add(p.BurstBytes > 0, "burst %db", p.BurstBytes)
	add(p.QueuePackets > 0, "queue %dp", p.QueuePackets)
	add(p.QueueTime > 0, "queue %s", p.QueueTime)
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

func number(x float64) string { return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64) }

func rateText(bits uint64) string {
	for _, u := range []unit{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}} {
		if float64(bits) >= u.factor {
			return number(float64(bits)/u.factor) + u.suffix
		}
	}
	return fmt.Sprintf("%dbit", bits)
}

// parseTime reads a time: "10ms". "0" is none.
func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("write a time of up to an hour, like 10ms")
	}
	return d, nil
}

// parseShare reads a percentage: "2.5%".
func parseShare(text string) (float64, error) {
	percent, ok := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if (!ok && text != "0") || err != nil || !(value >= 0 && value <= 100) {
		return 0, fmt.Errorf("write a percentage from 0%% to 100%%, like 2.5%%")
	}
	return value / 100, nil
}

func parseBurst(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 1 && value <= 1e6) {
		return 0, fmt.Errorf("write how many packets are lost in a row on average, from 1, like " +
			"3.5")
	}
	return value, nil
}

// parseQueue reads a number of packets, "100 packets" or "100p", or the longest wait, "20ms".
func parseQueue(text string) (packets int, wait time.Duration, err error) {
	for _, suffix := range []string{"packets", "packet", "p"} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			packets, err = strconv.Atoi(strings.TrimSpace(digits))
			if err != nil || packets < 1 || packets > 1e6 {
				return 0, 0, fmt.Errorf("write a number from 1 to a million, like 100 packets")
			}
			return packets, 0, nil
		}
	}
	if wait, err = parseTime(text); err != nil || wait == 0 {
		return 0, 0,
			fmt.Errorf(
				`write a number of packets, like "100 packets", or the longest wait, like 20ms`)
	}
	return 0, wait, nil
}

// unit is a factor behind a number.
type unit struct {
	suffix string
	factor float64
}

// The units of tc(8), the longest suffix first.
var (
	rateUnits = []unit{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}
	sizeUnits = []unit{{"kb", 1 << 10}, {"mb", 1 << 20}, {"b", 1}}
)

// ParseRate reads bits per second: "100mbit", "100Mbit".
func ParseRate(text string) (uint64, error) {
	value, err := parseUnit(text, rateUnits)
	if err == nil && (value < 8 || value > 100e9) {
		err = fmt.Errorf("a rate lies between 8bit and 100gbit")
	}
	return uint64(value), err
}

// ParseSize reads bytes: "64kb" is 65536.
func ParseSize(text string) (uint32, error) {
	value, err := parseUnit(text, sizeUnits)
	if err == nil && (value < 1 || value > math.MaxInt32) {
		err = fmt.Errorf("a size lies between 1b and 2047mb")
	}
	return uint32(value), err
}

func parseUnit(text string, units []unit) (float64, error) {
	text = strings.ToLower(text)
	var known []string
	for _, u := range units {
		known = append(known, u.suffix)
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		if value, err := strconv.ParseFloat(number, 64); err == nil && value >= 0 &&
			!math.IsInf(value, 0) {
			return value * u.factor, nil
		}
	}
	return 0, fmt.Errorf("write a number and one of %s", strings.Join(known, ", "))
}
