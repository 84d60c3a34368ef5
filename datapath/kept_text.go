package datapath

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// keptTextMax is how many bytes a text that is kept can have.
const keptTextMax = 64

// KeepText keeps a short text beside the pins of a role, by a name: it is there until the role is
// unloaded or the machine starts anew, as the kernel's state is that it tells of.
func KeepText(dir, name, text string) error {
	value := make([]byte, keptTextMax)
	if copy(value, text); text == "" || len(text) > keptTextMax {
		return fmt.Errorf("keep %s: %q has not 1 to %d bytes", name, text, keptTextMax)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4,
		ValueSize: keptTextMax, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	defer m.Close()
	if err = m.Put(uint32(0), value); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = m.Pin(filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// KeptText is what KeepText kept; "": nothing.
func KeptText(dir, name string) (string, error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer m.Close()
	var value [keptTextMax]byte
	if err := m.Lookup(uint32(0), &value); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(bytes.TrimRight(value[:], "\x00")), nil
}
