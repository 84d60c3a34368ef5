package soak

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lab/loadgen"
)

const mebi = 1 << 20

// report writes down what was seen. What must be exact holds, or there would be no report.
func (a *arena) report() error {
	r, last := a.recorder, a.readings[len(a.readings)-1]
	r.Compare(experiment.Comparison{
		What: "flows begun and ended", Source: "10,000,000", Ours: fmt.Sprint(a.flows),
		Says: fmt.Sprintf("with %d changes of pools, and %d agents ended and started again",
			a.changes, a.restarts),
	})
	var in uint64
	for _, n := range a.nodes() {
		in += last.accounts[n.Name].In
	}
	r.Compare(experiment.Comparison{
		What: "packets in, less those that a counter has", Source: "0", Ours: "0",
		Says: fmt.Sprintf("of %d, on %d nodes, looked at %d times", in, len(a.nodes()),
			len(a.readings)),
	})
	r.Compare(connections(a.loads))
	r.Compare(experiment.Comparison{
		What: "programs and maps of ended agents left in the kernel", Source: "0",
		Ours: fmt.Sprint(a.leaks.left),
		Says: fmt.Sprintf("of %d that there were", a.leaks.had),
	})
	for _, c := range a.growth() {
		r.Compare(c)
	}
	r.Table(a.balances(last))
	r.Table(a.memories())
	r.Note("Packets of the flows are given to the programs by BPF_PROG_TEST_RUN, at the agents' " +
		"own tables and counters, and what the " +
		"edge sends goes to the program of the host that it is sent to. Real connections come " +
		"through the interfaces meanwhile.")
	r.Note("Packets in: those given, and those that eth0 counts as received. Packets counted: " +
		"the agents' metrics, " +
		"sextant_packets_total of all outcomes and sextant_drops_total of all reasons. A packet " +
		"that a host can't pass on, because its " +
		"hop limit ends or it is too big, is a drop there, though the kernel answers it. What " +
		"the flow cache did is no outcome of its own.")
	r.Note("Each TCP flow of the given ones has an answer by way of the edge, in which one of " +
		"the hosts says that it is the owner: " +
		"one that is in the flow's chain is stored, another one refused.")
	return a.charts()
}

// connections judges the real ones.
func connections(loads []*loadgen.Result) experiment.Comparison {
	var done, failed uint64
	var failures loadgen.Failures
	for _, l := range loads {
		done, failed, failures = done+l.Done, failed+l.Failed, failures.Plus(l.Failures)
	}
	return experiment.Comparison{
		What: "real connections that failed", Source: "0", Ours: fmt.Sprint(failed),
		Says: fmt.Sprintf("of %d: %s", done+failed, failures),
	}
}

// tolerance is how much more memory than in the second quarter of a run may be in use in the last:
// Go's heap breathes.
const tolerance = 0.25

// growth compares memory of the last quarter of the run with that of the second.
func (a *arena) growth() (list []experiment.Comparison) {
	plain := func(n uint64) string { return fmt.Sprint(n) }
	for _, what := range []struct {
		name  string
		of    func(memory) uint64
		write func(uint64) string
	}{
		{"memory of the agent, MiB", func(m memory) uint64 { return m.Agent }, mib},
		{"kernel memory of tables, MiB", func(m memory) uint64 { return m.Maps }, mib},
		{"files that the agent has open", func(m memory) uint64 { return uint64(m.Files) }, plain},
		{"programs and tables", func(m memory) uint64 { return uint64(m.Objects) }, plain},
		{"pins", func(m memory) uint64 { return uint64(m.Pins) }, plain},
	} {
		for _, n := range []*node{a.edge, a.hosts[0]} {
			before, after := a.median(n, 0.25, 0.5, what.of), a.median(n, 0.75, 1, what.of)
			says := "stays"
			if float64(after) > float64(before)*(1+tolerance) {
				says = "grows"
			}
			list = append(list, experiment.Comparison{
				What:   n.role + ": " + what.name,
				Source: "as much in the last quarter as in the second",
				Ours:   fmt.Sprintf("%s, then %s", what.write(before), what.write(after)),
				Says:   says,
			})
		}
	}
	return list
}

func (a *arena) median(n *node, from, to float64, of func(memory) uint64) uint64 {
	var values []uint64
	for i, r := range a.readings {
		if at := (float64(i) + 0.5) / float64(len(a.readings)); at >= from && at < to {
			values = append(values, of(r.memories[n.Name]))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func mib(bytes uint64) string { return strconv.FormatFloat(float64(bytes)/mebi, 'f', 1, 64) }

// balances shows what became of the packets of each node.
func (a *arena) balances(last reading) experiment.Table {
	t := experiment.Table{Name: "packets", Title: "What became of all packets",
		Columns: []string{"Counter"}}
	rows := map[string][]string{}
	var names []string
	for _, n := range a.nodes() {
		t.Columns = append(t.Columns, n.Name)
		for name := range last.accounts[n.Name].all() {
			if rows[name] == nil {
				rows[name] = []string{name}
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	for _, name := range append([]string{"packets in"}, names...) {
		row, sum := []string{name}, uint64(0)
		for _, n := range a.nodes() {
			count := last.accounts[n.Name].all()[name]
			if name == "packets in" {
				count = last.accounts[n.Name].In
			}
			row, sum = append(row, fmt.Sprint(count)), sum+count
		}
		if sum > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// all are the counters by a name that tells outcomes, drops and the flow cache apart.
func (a account) all() map[string]uint64 {
	all := map[string]uint64{}
	maps.Copy(all, a.Outcomes)
	for name, n := range a.Drops {
		all["dropped: "+name] = n
	}
	for name, n := range a.Cache {
		all["flow cache: "+name] = n
	}
	return all
}

// memories shows what the nodes held over time.
func (a *arena) memories() experiment.Table {
	t := experiment.Table{
		Name: "memory", Title: "What nodes hold",
		Columns: []string{"Flows", "Node", "Agent, MiB", "Files open", "Tables, MiB",
			"Programs and maps", "Pins", "Fragments remembered"},
	}
	for i, r := range a.readings {
		if i != len(a.readings)-1 && i%max(1, len(a.readings)/5) != 0 {
			continue
		}
		for _, n := range a.nodes() {
			m := r.memories[n.Name]
			t.Add(r.flows, n.Name, mib(m.Agent), m.Files, mib(m.Maps), m.Objects, m.Pins,
				fmt.Sprintf("%d of %d", m.Entries["fragments"], m.Capacity["fragments"]))
		}
	}
	return t
}

func (a *arena) charts() error {
	for _, c := range []struct {
		name, title, y string
		of             func(memory, account) float64
	}{
		{"agents", "Memory of agents", "MiB resident",
			func(m memory, _ account) float64 { return float64(m.Agent) / mebi }},
		{"tables", "Kernel memory of tables", "MiB",
			func(m memory, _ account) float64 { return float64(m.Maps) / mebi }},
		{"fragments", "First fragments", "entries",
			func(m memory, _ account) float64 { return float64(m.Entries["fragments"]) }},
		{"packets", "Packets in", "millions",
			func(_ memory, p account) float64 { return float64(p.In) / 1e6 }},
		{"drops", "Packets dropped", "millions",
			func(_ memory, p account) float64 { return float64(p.dropped()) / 1e6 }},
	} {
		picture := chart.Chart{Title: c.title, X: "millions of flows", Y: c.y}
		for _, n := range a.nodes() {
			s := chart.Series{Name: n.Name}
			for _, r := range a.readings {
				s.Points = append(s.Points, chart.Point{X: float64(r.flows) / 1e6,
					Y: c.of(r.memories[n.Name], r.accounts[n.Name])})
			}
			picture.Series = append(picture.Series, s)
		}
		if err := a.recorder.Chart(c.name, picture); err != nil {
			return err
		}
	}
	return nil
}
