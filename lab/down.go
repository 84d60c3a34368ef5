package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sextant/linux"
)

// Down takes a lab down: it kills its processes and removes its namespaces,
// cgroups, pins and files. A lab that is not there is down already. A lab that
// another process holds is an error that wraps [ErrBusy].
func Down(name string, events func(Event)) error {
	began := time.Now()
	dir := filepath.Join(StateDir, name)
	if _, err := os.Stat(dir); !nameRule.MatchString(name) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockLab(name)
	if err != nil {
		return err
	}
	defer lock.release()
	l, err := readState(dir)
	switch {
	// a crash came before the state file, so before anything else
	case errors.Is(err, os.ErrNotExist):
		l = &Lab{Name: name, Dir: dir}
	case err != nil:
		return err
	default:
		l.Complete = false // should Down not come to its end, what is left is no lab
		if err := l.write(); err != nil {
			return err
		}
	}
	if err := l.remove(); err != nil {
		return err
	}
	newReporter(events).event(LabDown{name, time.Since(began)})
	return nil
}

// remove takes away everything that the state names and, if that succeeds, the
// state directory.
func (l *Lab) remove() error {
	if err := l.removeParts(); err != nil {
		return err
	}
	return linux.Failed(os.RemoveAll(l.Dir), "remove %s", l.Dir)
}

// removeParts takes away everything that the state names. What is gone already
// is no error. The state stays: should this fail or be cut short, the next try
// knows what is left.
func (l *Lab) removeParts() error {
	if l.Cgroup == "" { // the state was never written
		return nil
	}
	group := linux.OpenCgroup(l.Cgroup)
	errs := []error{group.Kill()}
	for _, node := range l.places() {
		errs = append(errs,
			linux.Failed(os.RemoveAll(node.BPF), "remove the pins in %s", node.BPF),
			linux.DeleteNetns(node.Namespace),
			linux.Failed(os.RemoveAll(node.Dir), "remove %s", node.Dir))
		os.Remove(filepath.Dir(node.BPF)) // if this was the last in it
	}
	errs = append(errs, group.Remove(), linux.Failed(os.RemoveAll(l.logDir()), "remove %s",
		l.logDir()))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take lab %s down: %w", l.Name, err)
	}
	return nil
}
