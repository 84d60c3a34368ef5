package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/agent/tracing"
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
		if k.Clean != nil {
			steps = append(steps, func() error {
				return k.Clean(filepath.Join(dir,
					string(k.Name)))
			})
		}
	}
	steps = append(steps, kernelfib.Remove)
	for _, k := range kinds() {
		steps = append(steps, func() error {
			return datapath.Unload(filepath.Join(dir,
				string(k.Name)))
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
// egress could recognise that they begin again.
func UnloadNode(dir, stateDir, node string) error {
	numbers, err := datapath.DetachHeadend(filepath.Join(dir, "headend"))
	if err == nil && len(numbers) > 0 {
		err = keepNumbers(stateDir, node, numbers)
	}
	if failed := Unload(dir); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("the node is unloaded, but the numbers of its policies begin again: %w",
			err)
	}
	return nil
}

// UnloadPins is Unload where nothing is known but the directory. A head-end is refused: where its
// numbers are to be kept says the node file.
func UnloadPins(dir string) error {
	if datapath.HasHeadend(filepath.Join(dir, "headend")) {
		return fmt.Errorf("a head-end is loaded in %s, and the numbers of its policies are kept "+
			"where its node file says; name that with -f FILE", dir)
	}
	return Unload(dir)
}

func keepNumbers(dir, node string, numbers map[uint32]uint64) error {
	store, err := state.Open(dir, node, slog.Default())
	if err != nil {
		return err
	}
	defer store.Close()
	store.Kept.Numbers = numbers
	return store.Write()
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
	if a.Node != nil {
		if changes = config.Diff(a.Node, next); len(changes) == 0 && !a.IsBroken() {
			if on.dryRun {
				return nil, a.watch.unattached()
			}
			if on.isFile {
				a.noteApplied(next)
			}
			return nil, a.watch.look()
		}
	}
	begun, kept := time.Now(), a.Store.Kept.Clone()
	if on.isFile && !on.dryRun {
		fingerprint, err := a.Store.FingerprintOf(next)
		if err != nil {
			return nil, err
		}
		a.Store.Kept.Applied = fingerprint
	}
	var p role.RoleChanges
	err = tracing.Step(on.trace, "prepare", func() error { return p.Prepare(a.Roles, next) })
	if err == nil && !on.breaks {
		err = tracing.Step(on.trace, "guard", func() error { return p.Guard(next) })
	}
	if err == nil && !on.dryRun {
		err = tracing.Step(on.trace, "switch", func() error { return a.switchTo(next, file, p) })
	}
	if err != nil || on.dryRun {
		p.Discard()
		// numbers may have been given
		kept.Epoch, kept.Numbers = a.Store.Kept.Epoch, a.Store.Kept.Numbers
		a.Store.Kept = kept
		return changes, errors.Join(err, removeEmpty(a.Dir))
	}
	p.Finish()
	if a.fingerprint, err = a.Store.FingerprintOf(next); err != nil { // which Save has computed
		a.Log.Error("the running configuration has no fingerprint", "error", err)
	}
	a.Node = next
	for _, room := range role.Having[role.Settler](a.Roles) {
		room.Settled()
	}
	a.collectWarnings()
	a.Updates.Observe(time.Since(begun).Seconds())
	return changes, nil
}

// noteApplied remembers a node file that says what runs already: the next agent may begin with it.
func (a *Agent) noteApplied(file *config.Node) {
	fingerprint, err := a.Store.FingerprintOf(file)
	if err == nil && fingerprint != a.Store.Kept.File && fingerprint != a.Store.Kept.Applied {
		a.Store.Kept.Applied = fingerprint
		err = a.Store.Write()
	}
	if err != nil {
		a.Log.Warn("a restarted agent may take the node file for another one", "error", err)
	}
}

// reload loads broken programs anew.
func (a *Agent) reload() error {
	_, err := a.reconcile(a.Node, nil, terms{})
	return err
}

// switchTo puts the prepared roles in place of the running ones; if one refuses, or the state
// can't be saved, all stays what it was.
func (a *Agent) switchTo(next, file *config.Node, p role.RoleChanges) error {
	err := p.Begin()
	if err == nil {
		err = p.Commit()
	}
	if err == nil && a.Node == nil {
		err = a.routing.lead() // nothing but a start changes the tables
	}
	if err == nil {
		p.Adopt(&a.Store.Kept)
		err = a.Store.Save(file, next)
		if a.Node == nil && state.DiskFault(err) {
			a.Log.Error("the agent runs without keeping its state", "error", err)
			err = nil
		}
	}
	if err != nil {
		if failed := p.RollBack(); failed != nil {
			return fmt.Errorf("%w; and what ran before could not be brought back whole: %w", err,
				failed)
		}
		return err
	}
	return nil
}

func (a *Agent) collectWarnings() {
	a.warnings = a.watch.faultTexts()
	for _, room := range role.Having[role.Troubled](a.Roles) {
		a.warnings = append(a.warnings, room.Troubles()...)
	}
	if warning := a.routing.warning(); warning != "" {
		a.warnings = append(a.warnings, warning)
	}
	for _, r := range a.Running() {
		if warning := r.Shortfall(); warning != "" {
			a.warnings = append(a.warnings, warning)
		}
	}
	for _, r := range a.Running() {
		for _, at := range r.Attached() {
			if at.Warning != "" {
				a.warnings = append(a.warnings, at.On+": "+at.Warning)
				a.Log.Warn(at.Warning, "interface", at.On)
			}
		}
	}
}
