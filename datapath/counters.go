package datapath

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf/btf"
)

// Counter is a named number of packets since the programs were first loaded.
type Counter struct {
	Name    string
	Packets uint64
}

// Drops returns the packets dropped by reason, zeros included, in the order of enum drop_reason;
// none of programs that drop nothing.
func (c *collection) Drops() ([]Counter, error) {
	return c.readEnum("drops", reasonNames())
}

// Outcomes returns the packets that were not dropped, by what became of them, in the order of enum
// outcome; none of programs that have counters of their own.
func (c *collection) Outcomes() ([]Counter, error) {
	return c.readEnum("outcomes", outcomeNames())
}

func (c *collection) readEnum(name string, names []string) ([]Counter, error) {
	m := c.maps[name]
	if m == nil {
		return nil, nil
	}
	counters := make([]Counter, 0, len(names))
	for i, label := range names {
		if label == "" {
			continue
		}
		packets, err := sumPerCPU(m, uint32(i), addWords[uint64])
		if err != nil {
			return nil, fmt.Errorf("read counters %s: %w", name, err)
		}
		counters = append(counters, Counter{Name: label, Packets: packets})
	}
	return counters, nil
}

// reasonNames returns the drop reasons' names by number; "" for none.
var reasonNames = sync.OnceValue(func() []string {
	return enumNames("drop_reason", "REASON_",
		"REASON_NONE", "REASON_COUNT")
})

// outcomeNames returns the names of enum outcome by number.
var outcomeNames = sync.OnceValue(func() []string {
	return enumNames("outcome", "OUTCOME_",
		"OUTCOME_COUNT")
})

// edgeTypes are the types of the edge's object. To read them takes a hundredth of reading all of
// it.
var edgeTypes = sync.OnceValues(func() (*btf.Spec, error) {
	return btf.LoadSpecFromReader(bytes.NewReader(_EdgeBytes))
})

// edgeType is the type of a name in the edge's object.
func edgeType[T btf.Type](name string) (found T, err error) {
	types, err := edgeTypes()
	if err == nil {
		err = types.TypeByName(name, &found)
	}
	return found, err
}

// enumNames reads an enum from the object's type information: C holds the one list. Those left out
// get "". It panics if the embedded object has no such enum, which only a mistake in the program
// can bring about.
func enumNames(name, trim string, leaveOut ...string) []string {
	enum, err := edgeType[*btf.Enum](name)
	if err != nil {
		panic("datapath: the embedded object has no enum " + name + ": " + err.Error())
	}
	names := make([]string, 0, len(enum.Values))
	for _, v := range enum.Values {
		label := strings.ToLower(strings.TrimPrefix(v.Name, trim))
		for _, out := range leaveOut {
			if v.Name == out {
				label = ""
			}
		}
		for uint64(len(names)) <= v.Value {
			names = append(names, "")
		}
		names[v.Value] = label
	}
	return names
}
