package datapath

// The objects are compiled from bpf/*.c and committed, so that building needs Go alone.
// "make generate" runs this with BPF2GO_CFLAGS naming the place of the machine's asm/types.h.

//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types edge ../bpf/edge.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types host ../bpf/host.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types steer ../bpf/steer.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types merge ../bpf/merge.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types stray ../bpf/stray.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types vrf ../bpf/vrf.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
