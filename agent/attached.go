package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/datapath"
	"sextant/linux"
)

// attachInterval is how often the kernel is asked whether the programs run, besides when an
// interface changes.
const attachInterval = time.Second

// placeKey names a place of attachment.
type placeKey struct {
	role        api.Role
	program, on string
}

// attachWatch sees to it that the roles' programs run where they should.
type attachWatch struct {
	*role.Core
	*role.Roles
	faults map[placeKey]string // programs that are not attached, and why
	bpffs  string              // where the file system of the pins is mounted
}

// look asks the kernel whether the programs run where they should, and attaches them again
// where they do not. While one is missing, it is a warning, and the role announces nothing. The
// error says what is still missing.
func (w *attachWatch) look() error {
	faults := map[placeKey]string{}
	for _, room := range role.Having[role.DeviceWatcher](w.Roles) {
		room.WatchDevices()
	}
	for _, r := range w.Running() {
		on := r.Expected()
		found, err := r.Uses().Faults(on)
		if err != nil {
			w.Log.Warn("the kernel does not say whether programs are attached", "role",
				r.Name, "error", err)
			continue
		}
		if !slices.ContainsFunc(found, func(fault string) bool { return fault != "" }) {
			continue
		}
		w.warnUnattached(r.Name, on, found)
		for i, fault := range w.attachAgain(r, found) {
			if fault != "" {
				faults[placeKey{r.Name, on[i].Program, on[i].On}] = fault
			}
		}
	}
	return w.noteFaults(faults)
}

// warnUnattached writes what is wrong, once for as long as it lasts.
func (w *attachWatch) warnUnattached(role api.Role, on []datapath.Attachment, faults []string) {
	for i, fault := range faults {
		if key := (placeKey{role, on[i].Program, on[i].On}); fault != "" &&
			w.faults[key] == "" {
			w.Log.Warn("packets are not processed as configured; the program is attached "+
				"again",
				"role", role, "program", on[i].Program, "on", on[i].On, "fault", fault)
		}
	}
}

// attachAgain returns what is still wrong, by place.
func (w *attachWatch) attachAgain(r role.NamedRole, before []string) []string {
	if mounted, err := linux.MountBPFFS(w.bpffs); err != nil || mounted {
		w.Log.Warn("the bpf file system was gone", "directory", w.bpffs, "mounted again",
			mounted, "error", err)
	}
	failure := r.Uses().Reattach()
	r.RunsAt(r.Uses().Attachments())
	still, err := r.Uses().Faults(r.Expected())
	if err != nil || len(still) != len(before) {
		return before
	}
	for i := range still {
		if still[i] != "" && failure != nil {
			still[i] += ": " + failure.Error()
		}
	}
	return still
}

// noteFaults makes what is wrong what status, metrics and announcements say.
func (w *attachWatch) noteFaults(faults map[placeKey]string) error {
	before := w.faults
	w.faults = faults
	for key := range before {
		if faults[key] == "" {
			w.Log.Info("the program is attached again", "role", key.role, "program",
				key.program, "on", key.on)
		}
	}
	if !maps.Equal(before, faults) {
		w.Rewarn()
		for _, room := range role.Having[role.PlaceWatcher](w.Roles) {
			room.PlacesChanged()
		}
		w.Announce()
	}
	return w.unattached()
}

// unattached says which programs are not attached, nil if all are.
func (w *attachWatch) unattached() error {
	if len(w.faults) == 0 {
		return nil
	}
	return &api.Error{Code: api.Conflict, Message: strings.Join(w.faultTexts(), "; ")}
}

func (w *attachWatch) faultTexts() (list []string) {
	for key, fault := range w.faults {
		list = append(list, fmt.Sprintf("%s: %s", key.role, fault))
	}
	slices.Sort(list)
	return list
}

// Processes says whether all programs of a role run: a role that lacks one announces nothing.
func (w *attachWatch) Processes(role api.Role) bool {
	for key := range w.faults {
		if key.role == role {
			return false
		}
	}
	return true
}

// faultAt is what status shows beside a program.
func (w *attachWatch) faultAt(role api.Role, at datapath.Attachment) string {
	return w.faults[placeKey{role, at.Program, at.On}]
}

// watchLinks reports changes of interfaces.
func watchLinks(ctx context.Context) (<-chan struct{}, error) {
	changes, err := linux.News(ctx, nil, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	return changes, nil
}
