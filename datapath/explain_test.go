package datapath

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/packet/flow"
)

// TestEveryMapHasAMemory: for each map of the programs somebody has thought about what explaining
// packets does with it.
func TestEveryMapHasAMemory(t *testing.T) {
	copied := []string{"refusals", "accept_states", "reported", "fragments", "new_connections",
		"quic_flows", "flows", "askers", "copies_seen", "sequences", "claims", "recoveries",
		"flow_choices", "flow_ways"}
	for object, spec := range specs(t) {
		if !slices.Contains([]string{"edge", "host", "headend", "egress", "vrf_stray",
			"vrf_lookup"}, object) {
			continue // not explained
		}
		for name := range spec.Maps {
			if _, known := memories[name]; !known && !isConstant(name) && !slices.Contains(copied,
				name) {
				t.Errorf("map %s of %s: say in memories whether explaining packets shares it or "+
					"has a fresh one, or here that it is copied", name, object)
			}
		}
	}
}

// explained is how many frames are compared, per role.
func explainedFrames() int { return min(*frames, 100_000) }

// TestExplainEqualsProgram gives the same frames to the loaded program, to its explainer and to the
// Go model: all three say the same, and what the program keeps is as if nobody had explained
// anything.
func TestExplainEqualsProgram(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for i, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
		w.run(t, fmt.Sprintf("edge, encapsulation %d", encapsulation), func(t *testing.T) {
			config := edgeConfig(t)
			config.Encapsulation, config.Interfaces[0].Side = encapsulation, Mixed
			if encapsulation == Carrier {
				config.FlowCache = testFlowCache
			}
			edges := newTwoEdges(t, w, config)
			x, err := edges.program.Explainer(Mixed)
			must(t, err)
			defer x.Close()
			twin := func(frame []byte) model.Result {
				return edges.model.Process(uint32(w.near), frame)
			}
			generator := edgeGenerator(t, uint64(i)+100, config)
			compareExplained(t, x, newRunner(edges.program.programs[Mixed], w.near),
				edges.program.collection, explainedFrames()/3+1, generator.Next, twin)
		})
	}
	w.run(t, "host", func(t *testing.T) {
		sockets, connections, keep := hostSockets(t, w)
		hosts := newTwoHosts(t, w, sockets)
		x, err := hosts.program.Explainer()
		must(t, err)
		defer x.Close()
		twin := func(frame []byte) model.Result {
			keep(t)
			return hosts.model.Process(uint32(w.near), 0, frame)
		}
		generator := hostGenerator(t, 100, connections, hosts.program.config)
		compareExplained(t, x, newRunner(hosts.program.programs["host"], w.near),
			hosts.program.collection, explainedFrames(), generator.NextHost, twin)
	})
}

func compareExplained(t *testing.T, x *Explainer, run *runner, live *collection, count int,
	next func() []byte, twin func([]byte) model.Result) {
	t.Helper()
	all := make([][]byte, 0, count)
	for len(all) < count {
		if frame := next(); len(frame) >= minFrame {
			all = append(all, bytes.Clone(frame))
		}
	}
	// First all are explained, then all are run: were anything disturbed, the program would decide
	// otherwise than the model.
	before := contents(t, live)
	explained := make([]Explained, count)
	for i, frame := range all {
		var err error
		explained[i], err = x.Run(run.ingress, frame)
		must(t, err)
		explained[i].Frame = bytes.Clone(explained[i].Frame)
	}
	if diff := cmp.Diff(before, contents(t, live)); diff != "" {
		t.Errorf("explaining has changed the maps of the program that runs (-before +after):\n%s",
			diff)
	}
	verdicts := map[model.Verdict]int{}
	for i, frame := range all {
		want := twin(frame)
		code, after := run.run(t, frame)
		if !agree(t, frame, code, after, want) || !explainedLike(t, frame, explained[i], want) {
			t.Fatalf("frame %d", i)
		}
		verdicts[want.Verdict]++
	}
	for _, verdict := range []model.Verdict{model.Pass, model.Drop, model.Transmit, model.Redirect,
		model.HandToKernel} {
		if verdicts[verdict] < count/200 {
			t.Errorf("only %d of %d frames had the verdict %s: the generator misses",
				verdicts[verdict], count, verdict)
		}
	}
}

func explainedLike(t *testing.T, frame []byte, got Explained, want model.Result) bool {
	t.Helper()
	reason := ""
	if want.Reason != model.ReasonNone {
		reason = want.Reason.String()
	}
	same := got.Verdict == want.Verdict && got.Taken == want.Taken && got.Reason == reason &&
		got.Interface == want.Interface &&
		bytes.Equal(got.Frame, want.Frame)
	if !same {
		t.Errorf("frame %x\nexplained %v, taken %v, reason %q, by %d: %x\nthe model %v, taken "+
			"%v, reason %q, by %d: %x", frame,
			got.Verdict, got.Taken, got.Reason, got.Interface, got.Frame, want.Verdict, want.Taken,
			reason, want.Interface, want.Frame)
	}
	return same
}

// contents are all entries of the maps that a program writes; of the tables that only Go writes,
// nothing can be said here.
func contents(t *testing.T, c *collection) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, m := range c.maps {
		if m.Type() == ebpf.RingBuf || m.Type() == ebpf.SkStorage ||
			memories[name] == shared && name != "busy" && name != "fib_epoch" {
			continue
		}
		hash := flow.Secret{}
		sum, key := uint64(0), []byte(nil)
		entries := m.Iterate()
		if perCPU(m.Type()) {
			var values [][]byte
			for entries.Next(&key, &values) {
				for _, v := range values {
					sum = flow.SipHash13(hash, fmt.Appendf(nil, "%d %x %x", sum, key, v))
				}
			}
		} else {
			value := make([]byte, m.ValueSize())
			for entries.Next(&key, value) {
				sum = flow.SipHash13(hash, fmt.Appendf(nil, "%d %x %x", sum, key, value))
			}
		}
		must(t, entries.Err())
		all[name] = fmt.Sprintf("%016x", sum)
	}
	return all
}

// TestExplainerCopiesAllKinds: hash tables, arrays, and those with a value per CPU.
func TestExplainerCopiesAllKinds(t *testing.T) {
	newWorld(t)
	for _, kind := range []ebpf.MapType{ebpf.Hash, ebpf.LRUHash, ebpf.Array, ebpf.PerCPUArray,
		ebpf.PerCPUHash} {
		t.Run(kind.String(), func(t *testing.T) {
			spec := &ebpf.MapSpec{Type: kind, KeySize: 4, ValueSize: 8, MaxEntries: 8}
			m, err := ebpf.NewMap(spec)
			must(t, err)
			defer m.Close()
			want := map[uint32][]uint64{}
			for key := range uint32(3) {
				values := []uint64{uint64(key) + 7}
				if perCPU(kind) {
					values = make([]uint64, ebpf.MustPossibleCPU())
					for cpu := range values {
						values[cpu] = uint64(key)<<8 + uint64(cpu)
					}
					must(t, m.Put(key, values))
				} else {
					must(t, m.Put(key, values[0]))
				}
				want[key] = values
			}
			twin, err := copyMap(spec, m, copyEntries)
			must(t, err)
			defer twin.Close()
			for _, key := range slices.Sorted(maps.Keys(want)) {
				got := []uint64{0}
				if perCPU(kind) {
					must(t, twin.Lookup(key, &got))
				} else {
					must(t, twin.Lookup(key, &got[0]))
				}
				if !slices.Equal(got, want[key]) {
					t.Errorf("key %d: %v, want %v", key, got, want[key])
				}
			}
		})
	}
}

// TestExplainRefuses: no program on such a side, a frame that is too short.
func TestExplainRefuses(t *testing.T) {
	w := newWorld(t)
	program, err := OpenEdge(filepath.Join(w.dir, "edge"), edgeConfig(t))
	must(t, err)
	defer program.Close()
	if _, err := program.Explainer(Internal); err == nil ||
		err.Error() != "explain packets: no interface of this edge is internal" {
		t.Errorf("an explainer for a side without interface: %v", err)
	}
	x, err := program.Explainer(External)
	must(t, err)
	defer x.Close()
	if _, err := x.Run(w.near, make([]byte, 13)); err == nil {
		t.Error("a frame without Ethernet header was explained")
	}
}
