package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/agent/api"
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

// watchAttached asks the kernel whether the programs run where they should, and attaches them again
// where they do not. While one is missing, it is a warning, and the role announces nothing. The
// error says what is still missing.
func (a *Agent) watchAttached() error {
	faults := map[placeKey]string{}
	a.followOwnInterfaces()
	for _, r := range a.running() {
		on := r.expected()
		found, err := r.uses().Faults(on)
		if err != nil {
			a.options.Log.Warn("the kernel does not say whether programs are attached", "role",
				r.name, "error", err)
			continue
		}
		if !slices.ContainsFunc(found, func(fault string) bool { return fault != "" }) {
			continue
		}
		a.warnUnattached(r.name, on, found)
		for i, fault := range a.attachAgain(r, found) {
			if fault != "" {
				faults[placeKey{r.name, on[i].Program, on[i].On}] = fault
			}
		}
	}
	return a.noteFaults(faults)
}

// followOwnInterfaces looks at interfaces that the head-end's programs know by number: its loop,
// with which they are loaded anew if it was removed, and its uplinks.
func (a *Agent) followOwnInterfaces() {
	if a.headend == nil {
		return
	}
	uplinks := ""
	if err := a.headend.program.FollowUplinks(); err != nil {
		uplinks = err.Error()
	}
	if uplinks != a.uplinks {
		if a.uplinks = uplinks; uplinks != "" {
			a.options.Log.Warn("the head-end can't send on an uplink", "error", uplinks)
		}
		a.collectWarnings()
	}
	if a.headend.program.HasLoop() {
		return
	}
	a.options.Log.Warn("the head-end's loop was removed; it is made anew, with its programs")
	a.headend.broken = true
	if _, err := a.reconcile(a.node, nil, terms{}); err != nil {
		a.options.Log.Warn("the head-end's loop can't be made anew; tried again soon", "error",
			err,
			"after", attachInterval)
	}
}

// warnUnattached writes what is wrong, once for as long as it lasts.
func (a *Agent) warnUnattached(role api.Role, on []datapath.Attachment, faults []string) {
	for i, fault := range faults {
		if key := (placeKey{role, on[i].Program, on[i].On}); fault != "" &&
			a.faults[key] == "" {
			a.options.Log.Warn("packets are not processed as configured; the program is attached "+
				"again",
				"role", role, "program", on[i].Program, "on", on[i].On, "fault", fault)
		}
	}
}

// attachAgain returns what is still wrong, by place.
func (a *Agent) attachAgain(r namedRole, before []string) []string {
	if mounted, err := linux.MountBPFFS(a.bpffs); err != nil || mounted {
		a.options.Log.Warn("the bpf file system was gone", "directory", a.bpffs, "mounted again",
			mounted, "error", err)
	}
	failure := r.uses().Reattach()
	r.runsAt(r.uses().Attachments())
	still, err := r.uses().Faults(r.expected())
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
func (a *Agent) noteFaults(faults map[placeKey]string) error {
	before := a.faults
	a.faults = faults
	for key := range before {
		if faults[key] == "" {
			a.options.Log.Info("the program is attached again", "role", key.role, "program",
				key.program, "on", key.on)
		}
	}
	if !maps.Equal(before, faults) {
		a.collectWarnings()
		a.dropStrays()
		a.learnOrWarn()
	}
	return a.unattached()
}

// unattached says which programs are not attached, nil if all are.
func (a *Agent) unattached() error {
	if len(a.faults) == 0 {
		return nil
	}
	return &api.Error{Code: api.Conflict, Message: strings.Join(a.faultTexts(), "; ")}
}

func (a *Agent) faultTexts() (list []string) {
	for key, fault := range a.faults {
		list = append(list, fmt.Sprintf("%s: %s", key.role, fault))
	}
	slices.Sort(list)
	return list
}

// processes says whether all programs of a role run: a role that lacks one announces nothing.
func (a *Agent) processes(role api.Role) bool {
	for key := range a.faults {
		if key.role == role {
			return false
		}
	}
	return true
}

// faultAt is what status shows beside a program.
func (a *Agent) faultAt(role api.Role, at datapath.Attachment) string {
	return a.faults[placeKey{role, at.Program, at.On}]
}

// watchLinks reports changes of interfaces. Reports that nobody has read yet are one.
func watchLinks(ctx context.Context, log *slog.Logger) (<-chan struct{}, error) {
	links := make(chan netlink.LinkUpdate, 64)
	failed := func(err error) {
		if ctx.Err() == nil { // else it is the end of the watch
			log.Warn("messages from the kernel about interfaces were lost; they are looked at in "+
				"a second", "error", err)
		}
	}
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(),
		netlink.LinkSubscribeOptions{ErrorCallback: failed}); err != nil {
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	changes := make(chan struct{}, 1)
	go func() {
		for range links {
			notify(changes)
		}
	}()
	return changes, nil
}
