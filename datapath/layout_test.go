package datapath

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/lb/acceptance"
	"sextant/lb/pool"
	"sextant/packet/srv6"
	"sextant/te/srpolicy"
)

// The type information (BTF) in the compiled objects says what C made of the structures, and
// nothing else does.

// specs are all objects by name.
func specs(t testing.TB) map[string]*ebpf.CollectionSpec {
	t.Helper()
	files, err := filepath.Glob("*_bpfel.o")
	must(t, err)
	all := map[string]*ebpf.CollectionSpec{}
	for _, file := range files {
		spec, err := ebpf.LoadCollectionSpec(file)
		must(t, err)
		all[strings.TrimSuffix(file, "_bpfel.o")] = spec
	}
	return all
}

// TestLimits compares the constants with the sizes of the maps and arrays, and with what other
// packages assume.
func TestLimits(t *testing.T) {
	all := specs(t)
	for _, test := range []struct {
		name      string
		got, want int
	}{
		{"ids of a chain in package pool", pool.MaxChain, len(chain{}.IDs)},
		{"ids in a carrier", srv6.MaxCarrierCSIDs, len(chain{}.IDs)},
		{"locators beside infrastructure prefixes", len(locators{}.Prefixes), infrastructureMax},
		{"chains of a block", leastBlock, int(all["edge"].Maps["tables"].InnerMap.MaxEntries)},
		{"bytes of a table's header", int(reflect.TypeFor[tableHeader]().Size()), chainBytes},
		{"services' counters", servicesMax, int(all["edge"].Maps["service_traffic"].MaxEntries)},
		{"SIDs by id", 1 << 16, int(all["edge"].Maps["sids"].MaxEntries)},
		{"counters of backends", counters,
			int(countersBlock) * int(all["edge"].Maps["backend_traffic"].MaxEntries)},
		{"bytes of a chain", int(reflect.TypeFor[chain]().Size()),
			int(all["edge"].Maps["tables"].InnerMap.ValueSize)},
		{"places of paths", pathPlaces * pathsMax, int(all["edge"].Maps["paths"].MaxEntries)},
		{"drop reasons", len(reasonNames()) - 1, int(all["edge"].Maps["drops"].MaxEntries)},
		{"outcomes", len(outcomeNames()) - 1, int(all["edge"].Maps["outcomes"].MaxEntries)},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", test.name, test.got, test.want)
		}
	}
	for _, name := range []string{"accept_policies", "accept_states", "busy", "served"} {
		if entries := all["host"].Maps[name].MaxEntries; entries != MaxHostServices {
			t.Errorf("%s: %d entries for %d services", name, entries, MaxHostServices)
		}
	}
	// A VIP is one entry more for each service at worst.
	if entries := all["edge"].Maps["services"].MaxEntries; entries < 2*servicesMax {
		t.Errorf("%d entries for %d services and their VIPs", entries, servicesMax)
	}
}

// enumOf lists an enum's values by name.
func enumOf(t testing.TB, spec *ebpf.CollectionSpec, name string) map[string]uint64 {
	t.Helper()
	var enum *btf.Enum
	must(t, spec.Types.TypeByName(name, &enum))
	values := map[string]uint64{}
	for _, v := range enum.Values {
		values[v.Name] = v.Value
	}
	return values
}

// TestObjectsAgree: what edge and host both have is the same in both, since Go reads it from one of
// them.
func TestObjectsAgree(t *testing.T) {
	all := specs(t)
	for _, enum := range []string{"drop_reason", "outcome"} {
		if diff := cmp.Diff(enumOf(t, all["edge"], enum),
			enumOf(t, all["host"], enum)); diff != "" {
			t.Errorf("enum %s (-edge +host):\n%s", enum, diff)
		}
	}
	for name, edge := range all["edge"].Maps {
		host := all["host"].Maps[name]
		if host == nil || isConstant(name) {
			continue
		}
		shape := func(m *ebpf.MapSpec) string {
			return fmt.Sprintf("%s of %d entries, %d to %d bytes", m.Type, m.MaxEntries, m.KeySize,
				m.ValueSize)
		}
		if shape(edge) != shape(host) {
			t.Errorf("map %s is a %s on the edge, a %s on the host", name, shape(edge), shape(host))
		}
	}
}

// TestEnums compares the numbers that Go writes into the maps with the C enums, and those of the
// model with both.
func TestEnums(t *testing.T) {
	all := specs(t)
	for _, test := range []struct {
		object, enum string
		want         map[string]uint64
	}{
		{"edge", "side", map[string]uint64{
			"SIDE_EXTERNAL": uint64(External), "SIDE_INTERNAL": uint64(Internal),
			"SIDE_MIXED": uint64(Mixed),
		}},
		{"edge", "encapsulation", map[string]uint64{
			"ENCAPSULATION_CARRIER": uint64(Carrier), "ENCAPSULATION_SRH": uint64(SRH),
			"ENCAPSULATION_SRH_REDUCED": uint64(SRHReduced),
		}},
		{"host", "accept_kind", map[string]uint64{
			"ACCEPT_ALWAYS": uint64(acceptance.Always), "ACCEPT_STATIC": uint64(acceptance.Static),
			"ACCEPT_DYNAMIC": uint64(acceptance.Dynamic),
			"ACCEPT_AVERAGE": uint64(acceptance.Average), "ACCEPT_DELAY": uint64(acceptance.Delay),
		}},
		{"host", "behavior", map[string]uint64{
			"BEHAVIOR_NONE":          0,
			"BEHAVIOR_END_OFFER":     uint64(behaviors[srv6.EndOFFER]),
			"BEHAVIOR_END_DT4":       uint64(behaviors[srv6.EndDT4]),
			"BEHAVIOR_END_DT6":       uint64(behaviors[srv6.EndDT6]),
			"BEHAVIOR_END_DT46":      uint64(behaviors[srv6.EndDT46]),
			"BEHAVIOR_END_DT4_COND":  uint64(behaviors[srv6.EndDT4COND]),
			"BEHAVIOR_END_DT6_COND":  uint64(behaviors[srv6.EndDT6COND]),
			"BEHAVIOR_END_DT46_COND": uint64(behaviors[srv6.EndDT46COND]),
		}},
		{"headend", "action", map[string]uint64{
			"ACTION_NONE": 0, "ACTION_PATH": uint64(srpolicy.Path),
			"ACTION_SPLIT_FLOW":   uint64(srpolicy.SplitFlow),
			"ACTION_SPLIT_PACKET": uint64(srpolicy.SplitPacket),
			"ACTION_MIRROR":       uint64(srpolicy.Mirror), "ACTION_DROP": uint64(srpolicy.Drop),
		}},
		{"edge", "service_path_bits", map[string]uint64{
			"SERVICE_PATHS": hasPaths, "SERVICE_COPIES_ALL": uint64(Copies{All: true}.bits()),
			"SERVICE_COPIES_SYN":  uint64(Copies{SYN: true}.bits()),
			"SERVICE_COPIES_DATA": uint64(Copies{Data: true}.bits()),
		}},
		{"headend", "redundancy", map[string]uint64{
			"REDUNDANCY_NONE": uint64(srpolicy.None), "REDUNDANCY_TLV": uint64(srpolicy.TLV),
			"REDUNDANCY_SID": uint64(srpolicy.SID),
		}},
	} {
		if diff := cmp.Diff(enumOf(t, all[test.object], test.enum), test.want); diff != "" {
			t.Errorf("enum %s (-C +Go):\n%s", test.enum, diff)
		}
	}
}

// TestReasonNames: a reason has the same number and name in the programs and in the model.
func TestReasonNames(t *testing.T) {
	var inModel []string
	for reason := model.ReasonNone; reason.String() != model.Reason(255).String(); reason++ {
		inModel = append(inModel, reason.String())
	}
	inModel[model.ReasonNone] = ""
	inModel = append(inModel, "") // REASON_COUNT
	if diff := cmp.Diff(reasonNames(), inModel); diff != "" {
		t.Errorf("reasons (-C +model):\n%s", diff)
	}
}
