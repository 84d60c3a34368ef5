package datapath

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestLoops holds the programs to what the verifier of Linux 6.1 asks of a loop: its walk over the
// program's graph takes a way back by a jump, and refuses one by falling through ("back-edge from
// insn"). Newer kernels take both.
func TestLoops(t *testing.T) {
	for object, spec := range specs(t) {
		for name, program := range spec.Programs {
			for _, edge := range fallsBack(program.Instructions) {
				t.Errorf("%s: program %s: %s", object, name, edge)
			}
		}
	}
}

// What the walk knows of an instruction.
const (
	unseen = iota
	onWay  // the walk is below it
	done
)

// walker walks over a program as check_cfg() of kernel/bpf/verifier.c does: depth first, the next
// instruction before the jump's.
type walker struct {
	instructions asm.Instructions
	at           map[asm.RawInstructionOffset]int // where the instruction of an offset is
	offset       []asm.RawInstructionOffset
	function     map[string]int // where a function begins
	state        []int
	faults       []string
}

// fallsBack are the places where a program falls through into a loop that it is in.
func fallsBack(instructions asm.Instructions) []string {
	w := walker{instructions: instructions, at: map[asm.RawInstructionOffset]int{},
		function: map[string]int{}}
	w.state = make([]int, len(instructions))
	for iter := instructions.Iterate(); iter.Next(); {
		w.at[iter.Offset] = iter.Index
		w.offset = append(w.offset, iter.Offset)
		if symbol := iter.Ins.Symbol(); symbol != "" {
			w.function[symbol] = iter.Index
		}
	}
	w.visit(0)
	return w.faults
}

func (w *walker) visit(i int) {
	w.state[i] = onWay
	ins := w.instructions[i]
	op := ins.OpCode.JumpOp()
	switch {
	case op == asm.Exit:
	case op == asm.Ja:
		w.follow(i, w.target(i), true)
	case ins.IsFunctionCall():
		w.follow(i, i+1, false)
		w.follow(i, w.function[ins.Reference()], true)
	case op == asm.Call || op == asm.InvalidJumpOp:
		w.follow(i, i+1, false)
	default:
		w.follow(i, i+1, true)
		w.follow(i, w.target(i), true)
	}
	w.state[i] = done
}

func (w *walker) target(i int) int {
	ins := w.instructions[i]
	if name := ins.Reference(); name != "" {
		return w.function[name]
	}
	jump := int64(ins.Offset)
	if ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja {
		jump = ins.Constant
	}
	return w.at[asm.RawInstructionOffset(int64(w.offset[i])+jump+1)]
}

func (w *walker) follow(from, to int, jump bool) {
	switch w.state[to] {
	case unseen:
		w.visit(to)
	case onWay:
		if !jump {
			w.faults = append(w.faults, fmt.Sprintf("instruction %d falls back to %d, at %s",
				w.offset[from], w.offset[to], w.line(to)))
		}
	}
}

// line is the line of C that an instruction comes from.
func (w *walker) line(i int) string {
	for ; i >= 0; i-- {
		if source := w.instructions[i].Source(); source != nil {
			return source.String()
		}
	}
	return "an unknown line"
}
