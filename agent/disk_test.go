package agent_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sextant/config"
)

// disk is a file system of its own, as small as it is told, for the state of a machine.
type disk struct {
	t    testing.TB
	path string
}

func (m *machine) disk() *disk {
	m.t.Helper()
	d := &disk{m.t, filepath.Join(m.dir, "state")}
	must(m.t, os.Mkdir(d.path, 0o700))
	must(m.t, unix.Mount("tmpfs", d.path, "tmpfs", 0, "size=8m"))
	m.t.Cleanup(func() { must(m.t, unix.Unmount(d.path, unix.MNT_DETACH)) })
	return d
}

func (d *disk) ballast() string { return filepath.Join(d.path, "ballast") }

// fill takes the last byte.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(d.t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		d.t.Fatal(err)
	}
}

func (d *disk) empty() { must(d.t, os.Remove(d.ballast())) }

func (d *disk) readOnly(is bool) {
	d.t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if is {
		flags |= unix.MS_RDONLY
	}
	must(d.t, unix.Mount("", d.path, "", flags, ""))
}

func (r *running) warned(of string) bool {
	r.t.Helper()
	status, err := r.Status(r.t.Context())
	must(r.t, err)
	return strings.Contains(strings.Join(status.Warnings, "\n"), of)
}

const (
	stateWarning  = "changes can't be kept on disk"
	chainsWarning = "chains are not kept on disk"
)

// An agent that has nothing to write starts on a disk that takes nothing, and serves what it had.
func TestStartOnADiskThatTakesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*disk){
		"full":      (*disk).fill,
		"read-only": func(d *disk) { d.readOnly(true) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			d := m.disk()
			r := m.start(exactText)
			drain(r, "web1", config.Draining)
			before := r.who()
			r.stop()
			spoil(d)
			defer d.readOnly(false)
			r = m.start(exactText)
			defer r.stop()
			if diff := cmp.Diff(before, r.who()); diff != "" {
				t.Errorf("chains before and after the restart (-before +after):\n%s", diff)
			}
		})
	}
}

// An agent starts even if it had something to write, and says that it can't keep it.
func TestFirstStartOnADiskThatTakesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*disk){
		"full":      (*disk).fill,
		"read-only": func(d *disk) { d.readOnly(true) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			d := m.disk()
			spoil(d)
			defer d.readOnly(false)
			r := m.start(exactText)
			defer r.stop()
			eventually(t, "warned", func() bool {
				return r.warned(stateWarning) && r.warned(chainsWarning)
			})
			if got := r.metric("sextant_state_kept"); got != "0" {
				t.Errorf("sextant_state_kept is %s", got)
			}
		})
	}
}

// When the disk is full, a running agent refuses changes and says why; with room it keeps them
// again, and the chains that it could not write.
func TestDiskFillsUp(t *testing.T) {
	m := newMachine(t)
	d := m.disk()
	r := m.start(exactText)
	eventually(t, "chains on disk", func() bool {
		files, err := filepath.Glob(filepath.Join(d.path, "both1.chains", "*tcp"))
		return err == nil && len(files) == 1
	})
	if r.warned(stateWarning) || r.metric("sextant_state_kept") != "1" {
		t.Error("there is a warning before the disk is full")
	}
	d.fill()
	state := config.Draining
	err := putState(r, "web1", state)
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("on a full disk: %v", err)
	}
	if !r.warned(stateWarning) || r.metric("sextant_state_kept") != "0" {
		t.Error("there is no warning")
	}
	d.empty()
	eventually(t, "kept again", func() bool {
		return !r.warned(stateWarning) && !r.warned(chainsWarning)
	})
	must(t, putState(r, "web1", state))
	before := r.who()
	r.stop()
	must(t, m.unload())
	r = m.start(exactText) // from the disk alone
	defer r.stop()
	if diff := cmp.Diff(before, r.who()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// A damaged state file keeps no edge down: the node file runs, on the chains that are in the
// kernel, whatever numbers services have there. The file is kept, and the status says it.
func TestDamagedState(t *testing.T) {
	for name, damage := range map[string]func(good []byte) []byte{
		"empty":            func([]byte) []byte { return nil },
		"cut off":          func(good []byte) []byte { return good[:len(good)/2] },
		"bytes behind":     func(good []byte) []byte { return append(good, "{}"...) },
		"zeros":            func(good []byte) []byte { return make([]byte, len(good)) },
		"a number twice":   numbersOf(`{"a": 1, "b": 1}`),
		"a number of none": numbersOf(`{"a": 4711}`),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			begin := strings.Index(exactText, "    - name: web\n")
			web := exactText[begin:strings.Index(exactText, "    - {name: dns")]
			r := m.start(strings.Replace(exactText, web, "", 1))
			_, err := r.apply(m.text(exactText), false) // web is the second that has a number
			must(t, err)
			drain(r, "web2", config.Draining)
			drain(r, "web2", config.Up)
			before := r.who()
			if !strings.Contains(before[0]+before[1]+before[2]+before[3], " ") {
				t.Fatal("changes of the pool left no trace")
			}
			r.stop()
			file := filepath.Join(m.dir, "state", "both1.json")
			good, err := os.ReadFile(file)
			must(t, err)
			bad := damage(bytes.Clone(good))
			must(t, os.WriteFile(file, bad, 0o600))
			r = m.start(exactText)
			defer r.stop()
			if diff := cmp.Diff(before, r.who()); diff != "" {
				t.Errorf("chains before and after (-before +after):\n%s", diff)
			}
			r.keptAside(file, bad)
		})
	}
}

// keptAside wants a damaged file to be kept, and the status to say where.
func (r *running) keptAside(file string, damaged []byte) {
	r.t.Helper()
	aside, err := filepath.Glob(file + ".damaged-*")
	must(r.t, err)
	if len(aside) != 1 {
		r.t.Fatalf("files kept aside: %v", aside)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damaged) {
		r.t.Errorf("kept aside is %.100q, %v", kept, err)
	}
	if !r.warned("the state of an earlier agent is damaged") || !r.warned(aside[0]) {
		r.t.Error("the status does not say it")
	}
}

// A state whose node can't be read is damaged too; its numbers count on.
func TestDamagedNodeInTheState(t *testing.T) {
	for name, pair := range map[string][2]string{
		"no node":      {"node: both1", "node: [1]"},
		"another node": {"node: both1", "node: both2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			r := m.start(exactText)
			drain(r, "web2", config.Draining)
			drain(r, "web2", config.Up)
			before := r.who()
			r.stop()
			file := filepath.Join(m.dir, "state", "both1.json")
			good, err := os.ReadFile(file)
			must(t, err)
			bad := bytes.Replace(good, []byte(pair[0]), []byte(pair[1]), 1)
			if bytes.Equal(bad, good) {
				t.Fatal("nothing is damaged")
			}
			must(t, os.WriteFile(file, bad, 0o600))
			r = m.start(exactText)
			defer r.stop()
			if diff := cmp.Diff(before, r.who()); diff != "" {
				t.Errorf("chains before and after (-before +after):\n%s", diff)
			}
			r.keptAside(file, bad)
		})
	}
}

// numbersOf is a state whose services of the edge have other numbers.
func numbersOf(numbers string) func(good []byte) []byte {
	return func(good []byte) []byte {
		i := bytes.Index(good, []byte(`"edgeServices": {`)) + len(`"edgeServices": `)
		end := i + bytes.IndexByte(good[i:], '}') + 1
		return append(append(bytes.Clone(good[:i]), numbers...), good[end:]...)
	}
}
