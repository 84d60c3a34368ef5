package lab

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sextant/linux"
)

// Status is how a lab is.
type Status string

// What a lab can be.
const (
	Running Status = "running" // all is there
	Held    Status = "held"    // a process brings it up, runs it or takes it down
	// it ended without being taken down: the next Up or Down removes it
	LeftOver Status = "leftover"
)

// Summary is a lab as [List] shows it.
type Summary struct {
	*Lab
	Status    Status
	Processes int // alive now
}

// List returns the labs of this machine by name.
func List() ([]Summary, error) {
	entries, err := os.ReadDir(StateDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, linux.Failed(err, "list the labs in %s", StateDir)
	}
	var labs []Summary
	for _, entry := range entries {
		summary, err := summarize(entry.Name())
		if errors.Is(err, os.ErrNotExist) { // taken down meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		labs = append(labs, summary)
	}
	return labs, nil
}

func summarize(name string) (Summary, error) {
	dir := filepath.Join(StateDir, name)
	l, err := readState(dir)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return Summary{}, err
		}
		l = &Lab{Name: name, Dir: dir} // not written yet, or never
	} else if err != nil {
		return Summary{}, err
	}
	summary := Summary{Lab: l}
	if summary.Status, err = l.status(); err != nil {
		return Summary{}, err
	}
	for _, node := range l.Nodes {
		pids, err := linux.OpenCgroup(node.Cgroup).Processes()
		if err != nil {
			return Summary{}, err
		}
		summary.Processes += len(pids)
	}
	return summary, nil
}

func (l *Lab) status() (Status, error) {
	lock, err := tryLock(l.Dir)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return Held, nil
	case err != nil:
		return "", err
	}
	lock.release()
	alive, err := l.alive()
	if l.Complete && alive {
		return Running, nil
	}
	return LeftOver, err
}
