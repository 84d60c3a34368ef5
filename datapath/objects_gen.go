//go:build ignore

// Objects_gen compiles each program of bpf/ into an object of package datapath, with the Go that
// loads it; benches of programs are for tests alone. Run by "make generate".
package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("objects: ")
	files, err := filepath.Glob("../bpf/*.c")
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		stem := strings.TrimSuffix(filepath.Base(file), ".c")
		if strings.HasPrefix(stem, "bench") {
			continue
		}
		compile := exec.Command("go", "tool", "bpf2go", "-go-package", "datapath",
			"-target", "bpfel", "-cc", "clang-19", "-strip", "llvm-strip-19", "-no-global-types",
			"-output-stem", stem, camel(stem), file, "--", "-O2", "-g", "-fno-strict-aliasing",
			"-Wall", "-Werror", "-mcpu=v3")
		compile.Stdout, compile.Stderr = os.Stdout, os.Stderr
		if err := compile.Run(); err != nil {
			log.Fatalf("%s: %v", file, err)
		}
	}
}

// camel is a name of C as one of Go: path_source is pathSource.
func camel(name string) string {
	var text strings.Builder
	upper := false
	for _, r := range name {
		if upper {
			r = unicode.ToUpper(r)
		}
		if upper = r == '_'; !upper {
			text.WriteRune(r)
		}
	}
	return text.String()
}
