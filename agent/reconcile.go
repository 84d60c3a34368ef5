package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
	"sextant/datapath"
	"sextant/routing/kernelfib"
)

// PinDirectory is where a node's programs, links and maps are pinned.
func PinDirectory(bpffs, node string) string { return filepath.Join(bpffs, "sextant", node) }

// Unload detaches the programs pinned in a node's directory and removes their tables, counters too.
// Where nothing is pinned there is nothing to do.
func Unload(dir string) error {
	var steps []func() error
	for _, k := range kinds() {
		if k.clean != nil {
			steps = append(steps, func() error {
				return k.clean(filepath.Join(dir,
					string(k.name)))
			})
		}
	}
	steps = append(steps, kernelfib.Remove)
	for _, k := range kinds() {
		steps = append(steps, func() error {
			return datapath.Unload(filepath.Join(dir,
				string(k.name)))
		})
	}
	for _, remove := range append(steps, func() error { return removeEmpty(dir) }) {
		if err := remove(); errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("%w; unload as root, for example with sudo", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// UnloadNode is Unload with the node's state directory. The numbers of its head-end are kept there,
// so that they run on when the node is started again: numbers in SIDs have no epoch by which an
// egress could tell that they begin afresh.
func UnloadNode(dir, state, node string) error {
	numbers, err := datapath.DetachHeadend(filepath.Join(dir, "headend"))
	if err == nil && len(numbers) > 0 {
		err = keepNumbers(state, node, numbers)
	}
	if failed := Unload(dir); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("the node is unloaded, but the numbers of its policies begin afresh: %w",
			err)
	}
	return nil
}

func keepNumbers(state, node string, numbers map[uint32]uint64) error {
	store, err := openStore(state, node, slog.Default())
	if err != nil {
		return err
	}
	defer store.close()
	store.kept.Numbers = numbers
	return store.write()
}

// removePaths removes the routes of health checks if an edge is there whose checks they are.
func removePaths(edge string) error {
	if _, err := os.Stat(edge); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return health.RemovePaths()
}

// removeEmpty removes a directory in which nothing is, if it is there.
func removeEmpty(dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove pin directory: %w", err)
}

// reconcile makes next what runs and what is kept on disk, and returns what differs from before. If
// anything fails, or with a dry run, what ran before is what runs after. File is the node file that
// next comes from, nil for a change of what runs.
func (a *Agent) reconcile(next, file *config.Node, on terms) (changes []config.Change, err error) {
	if a.node != nil {
		if changes = config.Diff(a.node, next); len(changes) == 0 && !a.isBroken() {
			if on.dryRun {
				return nil, a.watch.unattached()
			}
			return nil, a.watch.look()
		}
	}
	begun, kept := time.Now(), a.store.kept.clone()
	var p roleChanges
	err = p.prepare(a.roles, next)
	if err == nil && !on.breaks {
		err = p.guard(next)
	}
	if err == nil && !on.dryRun {
		err = a.switchTo(next, file, p)
	}
	if err != nil || on.dryRun {
		p.discard()
		// numbers may have been given
		kept.Epoch, kept.Numbers = a.store.kept.Epoch, a.store.kept.Numbers
		a.store.kept = kept
		return changes, errors.Join(err, removeEmpty(a.dir))
	}
	p.finish()
	a.node = next
	for _, room := range having[settler](a.roles) {
		room.settled()
	}
	a.collectWarnings()
	a.updates.Observe(time.Since(begun).Seconds())
	return changes, nil
}

// reload loads broken programs anew.
func (a *Agent) reload() error {
	_, err := a.reconcile(a.node, nil, terms{})
	return err
}

// switchTo puts the prepared roles in the place of the running ones; if one refuses, or the state
// can't be saved, all stays what it was.
func (a *Agent) switchTo(next, file *config.Node, p roleChanges) error {
	err := p.begin()
	if err == nil {
		err = p.commit()
	}
	if err == nil {
		p.adopt(&a.store.kept)
		err = a.store.save(file, next)
		if a.node == nil && diskFault(err) {
			a.options.Log.Error("the agent runs without keeping its state", "error", err)
			err = nil
		}
	}
	if err != nil {
		if failed := p.rollBack(); failed != nil {
			return fmt.Errorf("%w; and what ran before could not be brought back whole: %w", err,
				failed)
		}
		return err
	}
	return nil
}

func (a *Agent) collectWarnings() {
	a.warnings = a.watch.faultTexts()
	for _, room := range having[troubled](a.roles) {
		a.warnings = append(a.warnings, room.troubles()...)
	}
	if warning := a.routing.warning(); warning != "" {
		a.warnings = append(a.warnings, warning)
	}
	for _, r := range a.running() {
		if warning := r.shortfall(); warning != "" {
			a.warnings = append(a.warnings, warning)
		}
	}
	for _, r := range a.running() {
		for _, at := range r.attached() {
			if at.Warning != "" {
				a.warnings = append(a.warnings, at.On+": "+at.Warning)
				a.options.Log.Warn(at.Warning, "interface", at.On)
			}
		}
	}
}

// attachModes translates the configuration's words.
var attachModes = map[config.Mode]datapath.Mode{
	config.Auto: datapath.Auto, config.Native: datapath.Native, config.Generic: datapath.Generic,
}
