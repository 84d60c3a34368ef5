package datapath

// The objects are compiled from bpf/*.c and committed, so that building needs Go alone.
// "make generate" runs this with BPF2GO_CFLAGS naming the place of the machine's asm/types.h.

//go:generate go run objects_gen.go
//go:generate go run structs_gen.go
