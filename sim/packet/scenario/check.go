package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sextant/sim/packet"
)

// Bounds of what a scenario states: beyond them numbers overflow, or memory is short before
// anything was simulated.
const (
	longest = 1000 * time.Hour // picoseconds in 64 bits reach 106 days
	// MostSeeds is how many runs of a scheme there are at most.
	MostSeeds = 100_000
)

// most are the upper bounds of whole numbers; those of a topology are the generators'.
var most = map[string]int64{
	"queue.packets": 500_000, "queue.mark": 500_000, "queue.random": 500_000,
	"queue.host": 500_000, "queue.lossless.xoff": 500_000, "queue.lossless.xon": 500_000,
	"queue.lossless.headroom": 500_000,
	"transport.subflows":      256, "transport.delayedAckUs": 10_000_000,
	"transport.initialWindow": 4096, "transport.ssthresh": 1 << 20,
	"transport.reordering": 1 << 20, "seeds": MostSeeds,
}

// checkNumbers refuses times and whole numbers that are below 0 or out of bounds.
func (c *Scenario) checkNumbers() error { return checkNumbers("", reflect.ValueOf(c).Elem()) }

func checkNumbers(key string, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return checkNumbers(key, v.Elem())
	case v.Type() == reflect.TypeFor[time.Duration]():
		if d := time.Duration(v.Int()); d < 0 || d > longest {
			return fmt.Errorf("%s: %s; state a time from 0s to %.0fh", key, d, longest.Hours())
		}
	case v.CanInt():
		bound, bounded := most[key]
		if n := v.Int(); n < 0 || bounded && n > bound {
			if !bounded {
				return fmt.Errorf("%s: %d; state a number that is not below 0", key, n)
			}
			return fmt.Errorf("%s: %d; state a number from 0 to %d", key, n, bound)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := checkNumbers(fmt.Sprintf("%s[%d]", key, i), v.Index(i)); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name == "" {
				continue // not of the file
			}
			if err := checkNumbers(strings.TrimPrefix(key+"."+name, "."), v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// kindKeys are the keys of each kind of topology, which must be stated, all others must not.
var kindKeys = map[string][]string{
	"fat-tree": {"k"}, "leaf-spine": {"leaves", "spines", "hosts"}, "vl2": {"da", "di", "hosts"},
	"bcube": {"n", "k"}, "file": {"file"},
}

// check refuses keys of other kinds, and kinds without hosts: their switches would send.
func (t *Topology) check() error {
	keys, known := kindKeys[t.Kind]
	if !known {
		return t.unknown()
	}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		needed := slices.Contains(keys, name)
		switch {
		case name == "kind" || name == "k" && t.Kind == "bcube": // 0 is a level
		case needed && v.Field(i).IsZero():
			return fmt.Errorf("topology.%s: a %s needs it; state %s", name, t.Kind,
				strings.Join(keys, ", "))
		case !needed && !v.Field(i).IsZero():
			return fmt.Errorf("topology.%s: a %s has none; it has %s", name, t.Kind,
				strings.Join(keys, ", "))
		}
	}
	return nil
}

// checkFailures refuses failures that do not happen, or have no end that was wanted.
func (c *Scenario) checkFailures() error {
	for i, f := range c.Failures {
		switch {
		case f.At >= c.Duration:
			return fmt.Errorf("failures[%d].at: %s; the run ends at %s", i, f.At, c.Duration)
		case f.Back != 0 && f.Back <= f.At:
			return fmt.Errorf("failures[%d].back: %s is not after at, %s; leave it out if the "+
				"link stays down", i, f.Back, f.At)
		}
	}
	return nil
}

// inFlowMode are the schemes that rates at flow level know.
var inFlowMode = []string{"ecmp", "random", "cflb", "rerouted", "best-response"}

// CheckScheme says whether the scenario can have a way to choose paths.
func (c *Scenario) CheckScheme(scheme string) error {
	choice, err := named("paths.scheme", schemes, scheme)
	if err != nil {
		return err
	}
	rates := choice == packet.Rerouted || choice == packet.BestResponse
	switch {
	case rates && (c.Mode != "flow" || c.Paths.Reroute == 0):
		return fmt.Errorf("paths.scheme: %s needs mode: flow, and paths.reroute: how often flows "+
			"look at another path", scheme)
	case c.Mode == "flow" && !rates && choice != packet.ECMP && choice != packet.Random &&
		choice != packet.Greedy:
		return fmt.Errorf("paths.scheme: %s chooses by packets, which mode: flow has not; choose "+
			"one of %s", scheme, strings.Join(inFlowMode, ", "))
	}
	return nil
}

var wrongType = regexp.MustCompile(
	`cannot unmarshal \S+ into Go struct field \S+ of type (\S+)|time: [^\n]*`)

// plainly says what a value should be in place of what Go's types are called.
func plainly(err error) error {
	text := wrongType.ReplaceAllStringFunc(err.Error(), func(found string) string {
		switch of := wrongType.FindStringSubmatch(found)[1]; of {
		case "":
			return strings.TrimPrefix(found, "time: ") + "; write times like 2us or 1.5ms"
		case "time.Duration":
			return "this is no time; write it with its unit, like 2us"
		case "float64":
			return "this is no number; write it like 0.6"
		case "int", "int64":
			return "this is no whole number"
		case "bool":
			return "write true or false"
		default:
			return found
		}
	})
	return fmt.Errorf("%s", text)
}
