//go:build packaging

package deb_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the folder with the binary and its packages; they serve all tests.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "sextant-packaging-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "sextant")
	output, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path,
		"../../cmd/sextant").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, output)
	}
	return path, nil
})

// packages are those that were packed, by version.
var packages = map[string]string{}

// pack is the package of a version; versions differ in nothing else.
func pack(t *testing.T, version string) (file string) {
	t.Helper()
	if packages[version] == "" {
		packages[version] = packInto(t, filepath.Join(built, version), version)
	}
	return packages[version]
}

// packInto builds the package in a folder.
func packInto(t *testing.T, folder, version string) (file string) {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../../scripts/deb.sh", version, folder, program)
	cmd.Env = append(os.Environ(), "LEVEL=0", "SOURCE_DATE_EPOCH=1700000000")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("package: %v\n%s", err, output)
	}
	files, err := filepath.Glob(filepath.Join(folder, "sextant_"+version+"_*.deb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d packages in %s, want one", len(files), folder)
	}
	return files[0]
}
