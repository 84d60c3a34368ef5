package agent

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/agent/edge"
	"sextant/agent/headend"
	"sextant/agent/host"
	"sextant/agent/merge"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
	"sextant/te/srpolicy"
)

// TestEachLeafIsLoaded changes one value after the other of the reference's node file, which has
// every key. Diff sees each; what the kernel gets is another, but for the keys that it knows
// nothing of. That a program with other settings is loaded anew, datapath.Same says.
func TestEachLeafIsLoaded(t *testing.T) {
	reference := referenceNode(t)
	before := loadedBy(t, reference.Clone())
	if again := loadedBy(t, referenceNode(t)); !alike(before, again) {
		t.Fatal("one node file is loaded in two ways")
	}
	words := map[string][]string{} // of all leaves, by path
	for _, s := range config.Settings() {
		path := strings.ReplaceAll(s.Path, "[]", "")
		words[path] = s.Words
		delete(words, path[:max(0, strings.LastIndexByte(path, '.'))])
	}
	loaded := map[string]bool{} // by path of what was changed: it changes what is loaded
	change := func(reference *config.Node, before map[string]any, path string, at []int) {
		for _, value := range alternatives(leafAt(reflect.ValueOf(reference), at), words[path]) {
			n := reference.Clone()
			leafAt(reflect.ValueOf(n), at).Set(value)
			if len(config.Diff(reference, n)) == 0 {
				t.Errorf("%s: a change to %v is none", path, value)
			}
			if after := loadedBy(t, n); after != nil {
				loaded[path] = loaded[path] || !alike(before, after)
				checkEqual(t, path, before, after)
			}
		}
	}
	eachLeaf(reflect.ValueOf(reference).Elem(), "", nil, func(path string, at []int) {
		if _, isKey := words[path]; isKey {
			change(reference, before, path, at)
		}
	})
	// Of flow labels alone there is one cipher; of ports there are several.
	ports := reference.Clone()
	ports.PathSource.IPv6.Fields = "ports"
	ports.PathSource.Addresses = append(ports.PathSource.Addresses,
		netip.MustParseAddr("2001:db8:1::7"))
	eachLeaf(reflect.ValueOf(ports).Elem(), "", nil, func(path string, at []int) {
		if path == "pathSource.ipv6.cipher" {
			change(ports, loadedBy(t, ports), path, at)
		}
	})
	// Copies want two ways, and a carrier.
	copied := reference.Clone()
	copied.Edge.Encapsulation = config.Carrier
	for i := range copied.Edge.Services {
		copied.Edge.Services[i].Copies = []config.Copied{config.CopiedSYN}
	}
	eachLeaf(reflect.ValueOf(copied).Elem(), "", nil, func(path string, at []int) {
		if path == "edge.services.copies" {
			change(copied, loadedBy(t, copied), path, at)
		}
	})
	for path := range words {
		is, changed := loaded[path]
		if !changed {
			t.Errorf("%s: the node has no value that can be changed", path)
		}
		of := notLoaded.MatchString(path) || isOfAgent(path)
		if changed && of == is {
			t.Errorf("%s: loaded %v, and the test says that the kernel has it: %v; "+
				"what programs get of a role are the fields of what Build returns", path, is, !of)
		}
	}
	if len(words) < 200 {
		t.Errorf("%d keys; the test does not find them any more", len(words))
	}
}

// alike compares with all that is not exported, too.
func alike(a, b any) bool {
	return cmp.Equal(a, b, cmp.Exporter(func(reflect.Type) bool { return true }),
		cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
		cmp.Comparer(slices.Equal[[]pool.Chain]))
}

// checkEqual wants programs that have other settings not to be taken for the same.
func checkEqual(t *testing.T, path string, before, after map[string]any) {
	t.Helper()
	for role, settings := range before {
		if !strings.HasSuffix(reflect.TypeOf(settings).Name(), "Config") {
			continue
		}
		if same := datapath.Same(settings, after[role]); same != alike(settings, after[role]) {
			t.Errorf("%s: Same of the settings of %s says %v", path, role, same)
		}
	}
}

// notLoaded are the keys of what the agent does itself: no program and no table has them. What
// protections, routes and BGP lead to is loaded when it is computed or learned.
var notLoaded = regexp.MustCompile(`^(node|state|api\..*|protect\..*|bgp\..*|routing\..*|` +
	`edge\.(peers|site|formerTime|etcd\..*|network\..*)|` +
	`edge\.services\.(name|check\..*|slowStart|returnHold|learned\.agent|order)|` +
	`edge\.services\.way\..*|edge\.services\.backends\.(name|agent|node)|host\.services\.(name|check\..*)|` +
	`headend\.policies\.(name|color|endpoint)|headend\.southbound\..*|merge\.sids\.copies|` +
	`pathSource\.rules\.name|flowlets\.probe\..*|flowlets\.groups\.name|` +
	`flowlets\.groups\.paths\.name|telemetry\.(links\..*|source\.watch\.(name|service)|sink\.(collector|mirrors)))$`)

// isOfAgent says whether a key is one of a role that the agent itself carries out.
func isOfAgent(path string) bool {
	key, _, _ := strings.Cut(path, ".")
	return isCarriedOut(key, "agent")
}

// isCarriedOut says whether the role of a key is carried out by something: the tag role of config.
func isCarriedOut(key, by string) bool {
	for i := range reflect.TypeFor[config.Node]().NumField() {
		tag := reflect.TypeFor[config.Node]().Field(i).Tag
		if tag.Get("key") == key {
			return tag.Get("role") == by
		}
	}
	return false
}

// Roles that are registered are those that the node file can have, in its order.
func TestKindsAreTheRolesOfTheNodeFile(t *testing.T) {
	var want, got []string
	for i := range reflect.TypeFor[config.Node]().NumField() {
		if tag := reflect.TypeFor[config.Node]().Field(i).Tag; tag.Get("role") != "" {
			want = append(want, tag.Get("key"))
		}
	}
	for _, k := range kinds() {
		got = append(got, string(k.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles of config.Node, and kinds (-want +got):\n%s", diff)
	}
}

// referenceNode is the node file of the reference, with key files that hold their own names.
func referenceNode(t *testing.T) *config.Node {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/node-file.md")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	for _, block := range strings.Split(string(page), "\n```yaml\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```\n")
		file.WriteString(code + "\n")
	}
	n, err := config.Parse("node-file.md", []byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	n.Edge.Buckets = 1021 // fewer to compare
	n.Edge.Services[0].Check.Command = []string{"/bin/true"}
	n.Host.Services[0].Check.Command = []string{"/bin/true"}
	n.Host.Services[0].Check.Passive = &config.Passive{}
	for i := range n.Telemetry.Source.Watch {
		n.Telemetry.Source.Watch[i].Service = "" // config's tests are of what it stands for
	}
	// With one valid path, and every list in use, some settings make no difference.
	spread, closed := n.Headend.Policies[0], n.Headend.Policies[0]
	spread.Name, closed.Name, closed.Color = "spread", "closed", 102
	list := spread.Paths[0].Lists[0]
	list.Redundancy, list.Weight, list.Flow = config.NotNumbered, 1, 0
	other, down := list, list
	other.Name, down.State = "other", config.ListDown
	spread.Color, spread.Paths = 101, []config.CandidatePath{
		{Name: "wide", Preference: 101, Action: config.ActionSplitFlow, LeastLists: 1,
			Lists: []config.SegmentList{list, other}},
		{Name: "narrow", Preference: 100, Action: config.ActionPath, LeastLists: 1,
			Lists: []config.SegmentList{list}},
	}
	closed.Paths = []config.CandidatePath{{Name: "down", Action: config.ActionPath,
		LeastLists: 1, Lists: []config.SegmentList{down}}}
	idle := closed
	idle.Name, idle.Color = "idle", 103
	n.Headend.Policies = append(n.Headend.Policies, spread, closed, idle)
	n.Headend.Rules = append(n.Headend.Rules, config.SteeringRule{Policy: "spread"},
		config.SteeringRule{Policy: "closed"})
	return n
}

// readKeyFiles gives each key the name of its file.
func readKeyFiles(n *config.Node) {
	if n.SecretFile != "" {
		n.Secret = flow.Secret{1}
	}
	for _, k := range n.HMACKeys() {
		k.Secret, _ = srv6.NewHMACSecret([]byte(k.KeyFile))
	}
	n.CFLB.Key = config.CFLBKey(n.CFLB.KeyFile)
	n.PathSource.Key = config.CFLBKey(n.PathSource.KeyFile)
	n.Subflows.Key = config.CFLBKey(n.Subflows.KeyFile)
	for i := range n.Edge.Services {
		for j := range n.Edge.Services[i].QUIC.Configs {
			q := &n.Edge.Services[i].QUIC.Configs[j]
			q.Key = []byte(q.KeyFile)
		}
	}
}

// loadedBy is what package datapath gets of a node: the settings of each role's programs, and what
// its tables are filled with; nil if the node can't be.
func loadedBy(t *testing.T, n *config.Node) map[string]any {
	t.Helper()
	readKeyFiles(n)
	epoch := uint8(1)
	c := role.NewCore(t.Context(), "test", slog.New(slog.DiscardHandler))
	c.Node, c.Dir = &config.Node{}, filepath.Join(t.TempDir(), "none")
	c.Store = &state.Store{Kept: state.Kept{EdgeServices: map[string]uint32{},
		HostServices: map[string]uint32{}, Epoch: &epoch}}
	found := &role.Discoveries{Core: c, Learned: map[config.Endpoint][]config.Backend{}}
	for _, s := range n.Edge.Services {
		found.Learned[s.Endpoint] = []config.Backend{{
			Name: "bgp", SID: netip.MustParseAddr("fcbb:bb00:9::"), Weight: 1, State: config.Up}}
	}
	loaded := map[string]any{}
	for _, room := range role.OpenRooms(kinds(), role.Parts{Core: c, Found: found}).Rooms {
		if isCarriedOut(string(room.Name), "agent") {
			continue
		}
		built := reflect.ValueOf(room.Room).MethodByName("Build").Call(
			[]reflect.Value{reflect.ValueOf(n)})
		if !built[1].IsNil() || !addLoaded(loaded, string(room.Name), built[0].Interface(), n) {
			return nil
		}
	}
	return loaded
}

// addLoaded adds what programs get of a role: its fields, unless they have more than that. It
// returns false if the role's tables can't be.
func addLoaded(loaded map[string]any, name string, built any, n *config.Node) bool {
	switch r := built.(type) {
	case *edge.Role:
		loaded[name], loaded["signing key"] = r.Config, r.Hmac
		loaded["edge tables"] = tablesOf(r, n)
	case *host.Role:
		var services []any
		for _, s := range r.Services {
			services = append(services, s.Key, s.Index, s.Policy, s.QUIC)
		}
		loaded[name], loaded["keys"], loaded["host services"] = r.Config, r.Hmac, services
	case *headend.Role:
		rules, err := r.Steering.Compile(srpolicy.Source{Addr: r.Config.Source,
			HopLimit: r.Config.HopLimit, Epoch: r.Config.Epoch}, r.Active)
		if err != nil {
			return false
		}
		loaded[name], loaded["rules"] = r.Config, rules
	case *merge.Role:
		var instances []any
		for _, instance := range r.Instances {
			instances = append(instances, instance.MergeNumber)
		}
		loaded[name], loaded["instances"] = r.Config, instances
	default:
		v := reflect.ValueOf(built).Elem() // invalid: the node does not have the role
		for i := 0; v.IsValid() && i < v.NumField(); i++ {
			if f := v.Type().Field(i); f.IsExported() && !f.Anonymous {
				loaded[name+" "+f.Name] = v.Field(i).Interface()
			}
		}
	}
	return true
}

// tablesOf are the entries of services, chains with what they are made by, SIDs and QUIC
// configurations.
func tablesOf(e *edge.Role, n *config.Node) (all []any) {
	for i := range e.Services {
		s := &e.Services[i]
		var sids []any
		for j, b := range s.Backends {
			sids = append(sids, s.Members[j].ID, b.SID)
		}
		var quic []any
		for _, q := range s.QUIC.Configs {
			quic = append(quic, q.Config())
		}
		all = append(all, s.Key, s.Index, s.NewConnections, s.Spec(n),
			s.Generation.AllChains(),
			sids, s.Paths, s.Copies, quic)
	}
	return all
}

// eachLeaf visits the values that have a key of their own, with the fields and items that lead to
// them.
func eachLeaf(v reflect.Value, path string, at []int, visit func(string, []int)) {
	step := func(i int) []int { return append(slices.Clone(at), i) }
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		eachLeaf(v.Elem(), path, at, visit)
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			eachLeaf(v.Index(i), path, step(i), visit)
		}
	case isObject(v.Type()):
		for i := range v.NumField() {
			f := v.Type().Field(i)
			below := strings.TrimPrefix(path+"."+f.Tag.Get("key"), ".")
			if f.Anonymous {
				below = path
			} else if f.Tag.Get("key") == "" {
				continue
			}
			eachLeaf(v.Field(i), below, step(i), visit)
		}
	case v.Kind() != reflect.Pointer && v.Kind() != reflect.Slice:
		visit(path, at)
	}
}

func isObject(t reflect.Type) bool {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if f := t.Field(i); f.Anonymous || f.Tag.Get("key") != "" {
			return true
		}
	}
	return false
}

func leafAt(v reflect.Value, at []int) reflect.Value {
	v = v.Elem()
	for _, i := range at {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() == reflect.Slice {
			v = v.Index(i)
		} else {
			v = v.Field(i)
		}
	}
	return v
}

// alternatives are other values of a leaf. Not each is possible beside the rest of the node.
func alternatives(v reflect.Value, words []string) (list []reflect.Value) {
	add := func(other any) {
		if value := reflect.ValueOf(other).Convert(v.Type()); !value.Equal(v) {
			list = append(list, value)
		}
	}
	switch old := v.Interface().(type) {
	case netip.Addr:
		add(netip.MustParseAddr("fd00:5e::77"))
	case netip.Prefix:
		add(netip.MustParsePrefix("fd00:77::/64"))
	case netip.AddrPort:
		add(netip.AddrPortFrom(old.Addr(), old.Port()+1))
	case srv6.Block:
		block, _ := srv6.ParseBlock("fcbb:bb01::/32")
		add(block)
	case config.Load:
		add(config.Load{Kind: config.LoadPressure})
		add(config.Load{Kind: config.LoadQueue})
	case config.PortRange:
		add(config.PortRange{First: old.First + 1, Last: old.Last + 1})
	case config.Via:
		add(config.Via("1,-"))
	case config.HopCounts:
		add(config.HopCounts("3"))
	case config.StatusRange:
		add(config.StatusRange{First: old.First, Last: old.Last + 1})
	case flow.Secret:
		add(flow.Secret{2})
	case flow.Function:
		add(flow.BySipHash)
		add(flow.ByNH)
	case string:
		add(old + "x")
		add("closed") // a policy
	case bool:
		add(!old)
	default:
		for _, word := range words {
			add(word)
		}
		if v.Kind() == reflect.String {
			break
		}
		number := v.Convert(reflect.TypeFor[int64]()).Int()
		for _, other := range []int64{number + 1, number - 1, 2 * number, 1000 * number, 6, 17} {
			add(other)
		}
	}
	return list
}
