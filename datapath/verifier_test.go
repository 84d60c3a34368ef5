package datapath

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestVerifierLog: a refusal has all that the verifier said, each instruction before the fault too,
// wherever the error was wrapped; the error alone has the fault.
func TestVerifierLog(t *testing.T) {
	w := newWorld(t)
	c, err := newCollection(w.dir, nil)
	must(t, err)
	t.Cleanup(c.close)
	refused := asm.Instructions{asm.Mov.Imm(asm.R6, 7)}
	for range 40 {
		refused = append(refused, asm.Add.Imm(asm.R6, 1))
	}
	refused = append(refused, asm.Mov.Reg(asm.R0, asm.R9), asm.Return()) // R9 was never written
	_, err = c.load(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{
		"refused": {Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: refused},
	}})
	if err == nil || !strings.Contains(err.Error(), "R9 !read_ok") ||
		strings.Contains(err.Error(), "r6 += 1") {
		t.Fatalf("the error is %v; want the fault alone", err)
	}
	log := VerifierLog(fmt.Errorf("start edge: %w", err))
	if n := strings.Count(log, "r6 += 1"); n != 40 || !strings.Contains(log, "R9 !read_ok") {
		t.Errorf("%d of 40 instructions, and the fault, are in the log:\n%s", n, log)
	}
	if log := VerifierLog(ebpf.ErrKeyNotExist); log != "" {
		t.Errorf("the log of another error is %q", log)
	}
}
