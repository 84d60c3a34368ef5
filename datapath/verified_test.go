package datapath

import (
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
)

// verifiedMost is what an agent can have verified at each start: some 0.1 s. The kernel's verifier
// follows seven times as many instructions before it refuses a program (BPF_COMPLEXITY_LIMIT_INSNS,
// one million since Linux 5.2).
const verifiedMost = 150_000

// The edge's program, with nothing and with everything switched on that the verifier has to follow,
// is verified in a moment, in each encapsulation.
func TestEdgeVerifiedInstructions(t *testing.T) {
	w := newWorld(t)
	for _, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
		plain := edgeConfig(t)
		plain.Encapsulation = encapsulation
		full := plain
		full.Paths, full.Signs, full.FlowCache = true, true, testFlowCache
		full.Former = FormerFlows{Known: true, Secret: formerSecret}
		full.Interfaces = []EdgeInterface{{Name: "near", Side: Mixed}}
		for name, config := range map[string]EdgeConfig{"nothing": plain, "everything": full} {
			e, err := OpenEdge(w.dir, config)
			must(t, err)
			for side, program := range e.programs {
				count := verifiedInstructions(t, program)
				t.Logf("encapsulation %d, side %d, with %s: %d instructions", encapsulation, side,
					name, count)
				if count > verifiedMost {
					t.Errorf("encapsulation %d, side %d, with %s: the verifier followed %d "+
						"instructions, want %d at most", encapsulation, side, name, count,
						verifiedMost)
				}
			}
			e.Close()
		}
	}
}

// The host's programs, with everything that a setting can switch on, are verified in a moment.
func TestHostVerifiedInstructions(t *testing.T) {
	w := newWorld(t)
	config := hostConfig(t)
	config.HMAC = HMACSRH
	config.Learners = []netip.Prefix{netip.MustParsePrefix("fd00:5e::e0/124")}
	h, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(h.Close)
	for name, program := range h.programs {
		count := verifiedInstructions(t, program)
		t.Logf("%s: %d instructions", name, count)
		if count > verifiedMost {
			t.Errorf("%s: the verifier followed %d instructions, want %d at most", name, count,
				verifiedMost)
		}
	}
}

func verifiedInstructions(t testing.TB, program *ebpf.Program) int {
	t.Helper()
	info, err := program.Info()
	must(t, err)
	count, ok := info.VerifiedInstructions()
	if !ok {
		t.Fatal("this kernel does not say what its verifier followed; Linux 5.16 and newer do")
	}
	return int(count)
}
