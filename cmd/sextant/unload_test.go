package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/linux/linuxtest"
)

// Pins alone, whose node is not known, are unloaded; a head-end's stay, for its numbers.
func TestUnloadOfPinsAlone(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	unloadPins := func(dir string) error {
		return ns.Do(func() error { return unload(nil, dir) })
	}
	dir := filepath.Join(t.TempDir(), "pins")
	if err := unloadPins(dir); err != nil {
		t.Errorf("nothing is pinned: %v", err)
	}
	pin := func(name string) string {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pin("edge/bytes")
	if err := unloadPins(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after unloading, %s is there: %v", dir, err)
	}
	sequences := pin("headend/sequences")
	if err := unloadPins(dir); err == nil || !strings.Contains(err.Error(), "-f FILE") {
		t.Errorf("unload of a head-end without its node file: %v", err)
	}
	if _, err := os.Stat(sequences); err != nil {
		t.Errorf("what was refused is not as it was: %v", err)
	}
}
