package datapath

// The objects are compiled from bpf/*.c and committed, so that building needs Go alone.
// "make generate" runs this with BPF2GO_CFLAGS naming the place of the machine's asm/types.h.

//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types edge ../bpf/edge.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types host ../bpf/host.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types headend ../bpf/headend.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types egress ../bpf/egress.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-stem vrf_stray vrfStray ../bpf/vrf_stray.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-stem vrf_lookup vrfLookup ../bpf/vrf_lookup.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types cflb ../bpf/cflb.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-stem path_source pathSource ../bpf/path_source.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types telemetry ../bpf/telemetry.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-stem target_port targetPort ../bpf/target_port.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types flowlet ../bpf/flowlet.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go run structs_gen.go
