package agent

import (
	"errors"
	"path/filepath"
	"time"

	"sextant/config"
	"sextant/datapath"
)

// PinDirectory is where a node's programs, links and maps are pinned.
func PinDirectory(bpffs, node string) string { return filepath.Join(bpffs, "sextant", node) }

// Unload detaches the programs pinned in a node's directory and removes their tables, counters too.
func Unload(dir string) error {
	return errors.Join(datapath.Unload(filepath.Join(dir, "edge")), datapath.Unload(filepath.Join(dir, "host")), datapath.Unload(dir))
}

// reconcile makes next what runs, and returns what differs from before. If anything fails, or with dryRun, what ran before
// is what runs after.
func (a *Agent) reconcile(next *config.Node, dryRun bool) ([]config.Change, error) {
	var changes []config.Change
	if a.node != nil {
		if changes = config.Diff(a.node, next); len(changes) == 0 {
			return nil, nil
		}
	}
	begun := time.Now()
	edge, err := a.prepareEdge(next)
	if err != nil {
		return nil, err
	}
	host, err := a.prepareHost(next)
	if err != nil {
		edge.discard()
		return nil, err
	}
	if dryRun {
		edge.discard()
		host.discard()
		return changes, nil
	}
	if err := a.switchTo(edge, host); err != nil {
		return nil, err
	}
	a.node = next
	a.collectWarnings()
	a.metrics.updated(time.Since(begun))
	return changes, nil
}

// switchTo makes the prepared roles the running ones; if one refuses, both stay what they were.
func (a *Agent) switchTo(edge preparedEdge, host preparedHost) error {
	err := edge.commit()
	if err == nil {
		err = host.commit()
	}
	if err != nil {
		err = errors.Join(err, edge.rollBack(), host.rollBack())
		edge.discard()
		host.discard()
		return err
	}
	a.edge, a.host = edge.finish(), host.finish()
	return nil
}

func (a *Agent) collectWarnings() {
	a.warnings = nil
	for _, at := range append(a.edge.attached(), a.host.attached()...) {
		if at.Warning != "" {
			a.warnings = append(a.warnings, at.On+": "+at.Warning)
			a.options.Log.Warn(at.Warning, "interface", at.On)
		}
	}
}

// attachModes translates the configuration's words.
var attachModes = map[config.Mode]datapath.Mode{
	config.Auto: datapath.Auto, config.Native: datapath.Native, config.Generic: datapath.Generic,
}
