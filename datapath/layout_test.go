package datapath

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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

// twins are the structures of layout.go, and the C ones that they stand for, in the objects that
// have them.
var twins = []struct {
	goType  any
	cName   string
	objects string
}{
	{prefix{}, "prefix", "edge host"},
	{domain{}, "domain", "edge host headend egress vrf_stray"},
	{edgeSettings{}, "edge_settings", "edge"},
	{former{}, "former", "edge"},
	{hostSettings{}, "host_settings", "host"},
	{serviceKey{}, "service_key", "edge host"},
	{service{}, "service", "edge host"},
	{chain{}, "chain", "edge"},
	{servicePath{}, "path", "edge"},
	{localSID{}, "local_sid", "host"},
	{serviceCounters{}, "service_counters", "edge"},
	{backendCounter{}, "backend_counter", "edge"},
	{backendCounters{}, "backend_counters", "edge"},
	{flowCacheSettings{}, "flow_cache_settings", "edge"},
	{flowSet{}, "flow_set", "edge"},
	{newConnections{}, "new_connections", "edge"},
	{Openings{}, "openings", "edge"},
	{limit{}, "limit", "edge"},
	{aesTables{}, "aes_tables", "edge"},
	{aesKey{}, "aes_key", "edge"},
	{quicConfig{}, "quic_config", "edge"},
	{hmacKey{}, "hmac_key", "edge host"},
	{quicServer{}, "quic_server", "edge"},
	{acceptPolicy{}, "accept_policy", "host"},
	{acceptState{}, "accept_state", "host"},
	{Traffic{}, "traffic", "edge host"},
	{HostTraffic{}, "host_traffic", "host"},
	{HostSignals{}, "host_signals", "host"},
	{nextHop{}, "next_hop", "edge host"},
	{nextHopSet{}, "next_hop_set", "edge host"},
	{capture{}, "capture", "edge host"},

	{headendSettings{}, "headend_settings", "headend"},
	{match{}, "match", "headend"},
	{flowKey{}, "flow_key", "headend"},
	{flowPath{}, "flow_path", "headend"},
	{list{}, "list", "headend"},
	{rule{}, "rule", "headend"},
	{sequence{}, "sequence", "headend"},
	{policyTraffic{}, "policy_traffic", "headend"},
	{limit{}, "limit", "headend"},
	{mergeSettings{}, "merge_settings", "egress"},
	{memberKey{}, "member_key", "egress"},
	{member{}, "member", "egress"},
	{recoverySettings{}, "recovery_settings", "egress"},
	{recoverySlot{}, "recovery_slot", "egress"},
	{orderNote{}, "order_note", "egress"},
	{instanceCounters{}, "instance_counters", "egress"},
	{straySettings{}, "stray_settings", "vrf_stray"},
	{strayVRF{}, "stray_vrf", "vrf_stray vrf_lookup"},
	{StrayTraffic{}, "stray_traffic", "vrf_stray vrf_lookup"},
	{straySIDKey{}, "stray_sid_key", "vrf_stray"},
	{straySID{}, "stray_sid", "vrf_stray"},
	{telemetrySettings{}, "telemetry_settings", "telemetry"},
	{telemetryClass{}, "telemetry_class", "telemetry"},
	{telemetryList{}, "telemetry_list", "telemetry"},
	{telemetryPrefix{}, "telemetry_prefix", "telemetry"},
	{telemetryWatch{}, "telemetry_watch", "telemetry"},
	{telemetryFlowKey{}, "telemetry_flow_key", "telemetry"},
	{telemetryFlow{}, "telemetry_flow", "telemetry"},
	{targetKey{}, "target_key", "target_port"},
	{targetValue{}, "target", "target_port"},
}

// TestLayout compares each structure with its C twin, field by field: order, name, offset and size.
func TestLayout(t *testing.T) {
	all := specs(t)
	for _, twin := range twins {
		for object := range strings.FieldsSeq(twin.objects) {
			t.Run(object+"/"+twin.cName, func(t *testing.T) {
				var c *btf.Struct
				must(t, all[object].Types.TypeByName(twin.cName, &c))
				compareType(t, twin.cName, reflect.TypeOf(twin.goType), c)
			})
		}
	}
}

// compareType compares a Go type with a C type, down to the integers. Bytes in Go may be anything
// of that size in C: addresses, secrets, numbers in network order.
func compareType(t *testing.T, path string, g reflect.Type, c btf.Type) {
	t.Helper()
	c = btf.UnderlyingType(c)
	size, err := btf.Sizeof(c)
	must(t, err)
	if int(g.Size()) != size {
		t.Errorf("%s: %d bytes in Go, %d in C", path, g.Size(), size)
	}
	switch g.Kind() {
	case reflect.Struct:
		structure, ok := c.(*btf.Struct)
		if !ok {
			t.Errorf("%s: a structure in Go, %v in C", path, c)
			return
		}
		compareFields(t, path, g, structure)
	case reflect.Array:
		if g.Elem().Kind() == reflect.Uint8 {
			return
		}
		if wrapper, ok := c.(*btf.Struct); ok && len(wrapper.Members) == 1 {
			c = btf.UnderlyingType(wrapper.Members[0].Type)
		}
		array, ok := c.(*btf.Array)
		if !ok || g.Len() != int(array.Nelems) {
			t.Errorf("%s: %d elements in Go, %v in C", path, g.Len(), c)
			return
		}
		compareType(t, path+"[]", g.Elem(), array.Type)
	}
}

// plain makes names comparable: mss_ipv4 and MSSIPv4.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func compareFields(t *testing.T, path string, g reflect.Type, c *btf.Struct) {
	t.Helper()
	var inGo, inC []string
	for i := range g.NumField() {
		inGo = append(inGo, fmt.Sprintf("%s at %d", plain(g.Field(i).Name), g.Field(i).Offset))
	}
	for _, m := range c.Members {
		inC = append(inC, fmt.Sprintf("%s at %d", plain(m.Name), m.Offset.Bytes()))
	}
	if diff := cmp.Diff(inC, inGo); diff != "" {
		t.Errorf("fields of %s (-C +Go):\n%s", path, diff)
		return
	}
	for i, m := range c.Members {
		compareType(t, path+"."+m.Name, g.Field(i).Type, m.Type)
	}
}

// TestEveryStructHasATwin finds structures of layout.go that TestLayout forgets.
func TestEveryStructHasATwin(t *testing.T) {
	compared := map[string]bool{}
	for _, twin := range twins {
		compared[reflect.TypeOf(twin.goType).Name()] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "layout.go", nil, 0)
	must(t, err)
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if _, isStruct := spec.Type.(*ast.StructType); isStruct && !compared[spec.Name.Name] {
			t.Errorf("%s is not compared with C", spec.Name.Name)
		}
		return false
	})
}

// TestLimits compares the constants with the sizes of the maps and arrays, and with what other
// packages assume.
func TestLimits(t *testing.T) {
	all := specs(t)
	var ids, pathIDs, prefixes, locators, sids, counted *btf.Array
	must(t, fieldOf(all["edge"], "chain", "ids", &ids))
	must(t, fieldOf(all["edge"], "path", "ids", &pathIDs))
	must(t, fieldOf(all["host"], "infrastructure", "prefixes", &prefixes))
	must(t, fieldOf(all["host"], "locators", "prefixes", &locators))
	must(t, fieldOf(all["host"], "host_settings", "sids", &sids))
	must(t, fieldOf(all["edge"], "backend_counters", "counters", &counted))
	for _, test := range []struct {
		name      string
		got, want int
	}{
		{"ids of a chain", chainMax, int(ids.Nelems)},
		{"ids of a chain in package pool", pool.MaxChain, chainMax},
		{"ids in a carrier", srv6.MaxCarrierCSIDs, chainMax},
		{"infrastructure prefixes", infrastructureMax, int(prefixes.Nelems)},
		{"locators", locatorsMax, int(locators.Nelems)},
		{"SIDs of a host", sidsMax, int(sids.Nelems)},
		{"counters of a block", countersBlock, int(counted.Nelems)},
		{"services' tables, now and before", 2 * servicesMax,
			int(all["edge"].Maps["tables"].MaxEntries)},
		{"services' counters", servicesMax, int(all["edge"].Maps["service_traffic"].MaxEntries)},
		{"SIDs by id", 1 << 16, int(all["edge"].Maps["sids"].MaxEntries)},
		{"counters of backends", counters,
			countersBlock * int(all["edge"].Maps["backend_traffic"].MaxEntries)},
		{"bytes of a chain", int(reflect.TypeFor[chain]().Size()),
			int(all["edge"].Maps["tables"].InnerMap.ValueSize)},
		{"SIDs of a path", pathMaxSIDs, int(pathIDs.Nelems)},
		{"services' paths", servicesMax, int(all["edge"].Maps["paths"].MaxEntries)},
		{"bytes of a path", int(servicePathBytes),
			int(all["edge"].Maps["paths"].InnerMap.ValueSize)},
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

// fieldOf finds the type of a structure's field.
func fieldOf[T btf.Type](spec *ebpf.CollectionSpec, structure, field string, out *T) error {
	var c *btf.Struct
	if err := spec.Types.TypeByName(structure, &c); err != nil {
		return err
	}
	for _, m := range c.Members {
		if found, ok := btf.UnderlyingType(m.Type).(T); ok && m.Name == field {
			*out = found
			return nil
		}
	}
	return fmt.Errorf("struct %s has no such field %s", structure, field)
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
			"ACCEPT_AVERAGE": uint64(acceptance.Average),
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
