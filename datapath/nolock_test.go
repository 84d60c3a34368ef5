package datapath

import (
	"testing"

	"github.com/cilium/ebpf/asm"
)

// Neither numbering nor elimination takes a lock: no instruction of the head-end or the egress
// does, while the host's acceptance policies, which do, show that it would be seen.
func TestCopiesTakeNoLock(t *testing.T) {
	locks := map[string]int{}
	for object, spec := range specs(t) {
		for _, program := range spec.Programs {
			for _, i := range program.Instructions {
				if i.IsBuiltinCall() && asm.BuiltinFunc(i.Constant) == asm.FnSpinLock {
					locks[object]++
				}
			}
		}
	}
	if locks["headend"] != 0 || locks["egress"] != 0 || locks["host"] == 0 {
		t.Errorf("calls of bpf_spin_lock by object: %v", locks)
	}
}
