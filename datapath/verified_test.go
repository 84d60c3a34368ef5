package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
)

// verifiedMost is half of the instructions that the kernel's verifier follows before it refuses a
// program (BPF_COMPLEXITY_LIMIT_INSNS, one million since Linux 5.2): compilers and verifiers
// differ.
const verifiedMost = 500_000

// The edge with nothing and with everything switched on that the verifier has to follow stays below
// half of its bound, in each encapsulation.
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
