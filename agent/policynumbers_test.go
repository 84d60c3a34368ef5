package agent

import (
	"fmt"
	"log/slog"
	"testing"

	"sextant/agent/headend"
	"sextant/agent/merge"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

func policyOfLists(name string, lists ...string) srpolicy.Policy {
	p := srpolicy.Policy{Name: name, Paths: []srpolicy.CandidatePath{{Name: "only"}}}
	for _, l := range lists {
		p.Paths[0].Lists = append(p.Paths[0].Lists, srpolicy.List{Name: l})
	}
	return p
}

// Policies and lists keep their numbers whatever comes and goes beside them; what returns has its
// own again as long as nobody else needed it.
func TestPolicyNumbersStay(t *testing.T) {
	number := func(known map[string]state.PolicyNumbers,
		policies ...srpolicy.Policy) map[string]state.PolicyNumbers {
		t.Helper()
		numbers, err := state.NumberPolicies(known, policies)
		if err != nil {
			t.Fatal(err)
		}
		return numbers
	}
	first := number(nil, policyOfLists("a", "x", "y"), policyOfLists("b", "x"))
	second := number(first, policyOfLists("c", "x"), policyOfLists("b", "z", "x"))
	third := number(second, policyOfLists("a", "y"), policyOfLists("c", "x"))
	for _, want := range []struct {
		numbers      map[string]state.PolicyNumbers
		policy, list string
		flow         uint32
	}{
		{first, "a", "x", 1}, {first, "a", "y", 2}, {first, "b", "x", 65},
		{second, "b", "x", 65}, {second, "b", "z", 66}, {second, "c", "x", 129},
		{third, "a", "y", 2}, {third, "c", "x", 129},
	} {
		if got := want.numbers[want.policy].Flow(want.list); got != want.flow {
			t.Errorf("policy %s list %s: flow %d, want %d", want.policy, want.list, got, want.flow)
		}
	}
}

func TestPolicyNumbersRunOut(t *testing.T) {
	var many, others []srpolicy.Policy
	for i := range config.MaxPolicies {
		many = append(many, policyOfLists(fmt.Sprintf("m%d", i), "x"))
		others = append(others, policyOfLists(fmt.Sprintf("o%d", i), "x"))
	}
	known, err := state.NumberPolicies(nil, many)
	if err != nil {
		t.Fatal(err)
	}
	next, err := state.NumberPolicies(known, others)
	if err != nil || len(next) != config.MaxPolicies {
		t.Errorf("%d numbers, error %v: those that are gone do not give theirs away", len(next),
			err)
	}
	if _, err := state.NumberPolicies(known, append(many, others[0])); err == nil {
		t.Error("more policies than there are numbers are numbered")
	}
}

// What the node file may say is what the data plane can do.
func TestLimitsOfConfiguration(t *testing.T) {
	for name, pair := range map[string][2]int{
		"policies":        {config.MaxPolicies, srpolicy.MaxPolicies},
		"rules":           {config.MaxRules, srpolicy.MaxRules},
		"lists":           {config.MaxLists, srpolicy.MaxLists},
		"header":          {config.MaxHeaderBytes, srpolicy.MaxHeader},
		"protected flows": {config.MaxMerges, datapath.MaxInstances},
		"paths of one":    {config.MaxMergePaths, datapath.MaxPaths},
		"copies":          {config.CopiesMTU, datapath.LoopMTU},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the configuration allows %d, the data plane %d", name, pair[0], pair[1])
		}
	}
	if config.DefaultMergeReset != frer.DefaultReset {
		t.Errorf("reset after %v by default, want %v", config.DefaultMergeReset, frer.DefaultReset)
	}
	n, err := config.Parse("merge.yaml", []byte(`
node: m
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
merge: {interfaces: [{name: e0}], sids: [{prefix: "fcbb:bb00:2:f::/80", flows: [1]}, {prefix: "fcbb:bb00:2:f::/80", flows: [2], form: sid, rate: 10000, skew: 1s},
  {prefix: "fcbb:bb00:2:f::/80", flows: [3], history: 17}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{13, 14, 17} {
		instance, err := merge.InstanceOf(n.Merge.SIDs[i])
		if err != nil || instance.Rules.HistoryLog2 != want || instance.Rules.Check() != nil {
			t.Errorf("%s: rules %+v, error %v; want a history of 2^%d", n.Merge.SIDs[i],
				instance.Rules, err, want)
		}
	}
}

// A protected flow keeps its place as long as its rules and first paths stay; a changed one gets a
// place that nothing uses.
func TestMergeNumbers(t *testing.T) {
	rules := frer.Settings{HistoryLog2: 10, Bits: frer.BitsTLV, Reset: frer.DefaultReset}
	instance := func(flows ...uint32) datapath.Instance {
		return datapath.Instance{Flows: flows, Rules: rules}
	}
	other := instance(1, 2)
	other.Rules.HistoryLog2 = 11
	known := []state.MergeNumber{{Instance: instance(1, 2)},
		{Index: 1, Instance: instance(5)}}
	for _, c := range []struct {
		wanted []datapath.Instance
		want   []uint32
	}{
		{[]datapath.Instance{instance(5), instance(1, 2)}, []uint32{1, 0}},
		{[]datapath.Instance{instance(1, 2, 3), instance(5, 6)}, []uint32{0, 1}},
		{[]datapath.Instance{instance(1), instance(2, 1), other}, []uint32{2, 3, 4}},
	} {
		m := &merge.Role{}
		for _, i := range c.wanted {
			m.Instances = append(m.Instances,
				merge.MergeInstance{MergeNumber: state.MergeNumber{Instance: i}})
		}
		m.Number(known)
		for i, n := range m.Numbers() {
			if n.Index != c.want[i] {
				t.Errorf("%+v: place %d, want %d", c.wanted[i], n.Index, c.want[i])
			}
		}
	}
}

// The numbers with which a node was unloaded are gone on with once, in their epoch. Without them
// the next epoch begins.
func TestNumbersOfAnUnloadedNode(t *testing.T) {
	dir, epoch := t.TempDir(), uint8(255)
	h := &headend.Room{Slot: role.Slot[*headend.Role]{Parts: role.Parts{Core: &role.Core{}}}}
	reopen := func() {
		t.Helper()
		var err error
		if h.Store, err = state.Open(dir, "pe1", slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(epoch uint8, next uint64) {
		t.Helper()
		if e, numbers := h.NextEpoch(); e != epoch || numbers[3] != next {
			t.Errorf("epoch %d with numbers %v, want %d with %d", e, numbers, epoch, next)
		}
	}
	reopen()
	h.Store.Kept.Epoch = &epoch
	if err := h.Store.Write(); err != nil {
		t.Fatal(err)
	}
	want(0, 0)
	if err := keepNumbers(dir, "pe1", nil); err == nil {
		t.Error("numbers are kept though an agent runs")
	}
	h.Store.Close()
	if err := keepNumbers(dir, "pe1", map[uint32]uint64{3: 70_000}); err != nil {
		t.Fatal(err)
	}
	reopen()
	defer h.Store.Close()
	want(255, 70_000)
	if err := h.BeginEpoch(255); err != nil {
		t.Fatal(err)
	}
	want(0, 0)
}
