package datapath

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
)

// TestPrintIsOfAllThatIsLoaded: another object, program, size of a table, or octet of a constant is
// another print.
func TestPrintIsOfAllThatIsLoaded(t *testing.T) {
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"edge": loadEdge, "host": loadHost,
	} {
		fresh := func() *ebpf.CollectionSpec {
			spec, err := load()
			must(t, err)
			return spec
		}
		from := source{[]byte("object"), "places"}
		print := from.print(fresh())
		if again := from.print(fresh()); again != print {
			t.Errorf("%s: the same has the prints %s and %s", name, print, again)
		}
		seen := []string{print, source{[]byte("other"), "places"}.print(fresh()),
			source{[]byte("object"), "elsewhere"}.print(fresh())}
		spec := fresh()
		for program := range spec.Programs {
			changed := fresh()
			delete(changed.Programs, program)
			seen = append(seen, from.print(changed))
		}
		for table := range spec.Maps {
			changed := fresh()
			changed.Maps[table].MaxEntries++
			seen = append(seen, from.print(changed))
		}
		octets := 0
		for variable, v := range spec.Variables {
			for i := range v.Value {
				changed := fresh()
				changed.Variables[variable].Value[i] ^= 1
				seen = append(seen, from.print(changed))
				if octets++; i == 16 {
					break // of large tables some will do
				}
			}
		}
		if octets < 50 {
			t.Errorf("%s has %d octets of constants", name, octets)
		}
		slices.Sort(seen)
		if distinct := len(slices.Compact(slices.Clone(seen))); distinct != len(seen) {
			t.Errorf("%s: %d changes have %d prints", name, len(seen), distinct)
		}
	}
}
