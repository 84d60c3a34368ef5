package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
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

// attached is a role's program as the kernel has it.
type attached struct {
	role    string
	on      []datapath.Attachment
	faults  func([]datapath.Attachment) ([]string, error)
	program interface {
		Reattach() error
		Attachments() []datapath.Attachment
	}
	runsAt func([]datapath.Attachment)
}

// attachedRoles lists the roles that have programs.
func (a *Agent) attachedRoles() (list []attached) {
	if e := a.edge; e != nil {
		list = append(list, attached{"edge", e.attached(), e.program.Faults, e.program, e.runsAt})
	}
	if h := a.host; h != nil {
		list = append(list, attached{"host", h.attached(), h.program.Faults, h.program, h.runsAt})
	}
	if h := a.headend; h != nil {
		list = append(list, attached{"headend", h.attached(), h.program.Faults, h.program,
			h.runsAt})
	}
	if m := a.merge; m != nil {
		list = append(list, attached{"merge", m.attached(), m.program.Faults, m.program, m.runsAt})
	}
	if s := a.strayRole; s != nil {
		list = append(list, attached{"strays", s.arrivals(), s.program.Faults, s.program, s.runsAt})
	}
	return list
}

// placeKey names a place of attachment.
type placeKey struct{ role, program, on string }

// watchAttached asks the kernel whether the programs run where they should, and attaches them again
// where they do not. While one is missing, it is a warning, and the role announces nothing. The
// error says what is still missing.
func (a *Agent) watchAttached() error {
	faults := map[placeKey]string{}
	a.followOwnInterfaces()
	for _, r := range a.attachedRoles() {
		found, err := r.faults(r.on)
		if err != nil {
			a.options.Log.Warn("the kernel does not say whether programs are attached", "role",
				r.role, "error", err)
			continue
		}
		if !slices.ContainsFunc(found, func(fault string) bool { return fault != "" }) {
			continue
		}
		a.warnUnattached(r, found)
		for i, fault := range a.attachAgain(r, found) {
			if fault != "" {
				faults[placeKey{r.role, r.on[i].Program, r.on[i].On}] = fault
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
func (a *Agent) warnUnattached(r attached, faults []string) {
	for i, fault := range faults {
		if key := (placeKey{r.role, r.on[i].Program, r.on[i].On}); fault != "" &&
			a.faults[key] == "" {
			a.options.Log.Warn("packets are not processed as configured; the program is attached "+
				"again",
				"role", r.role, "program", r.on[i].Program, "on", r.on[i].On, "fault", fault)
		}
	}
}

// attachAgain returns what is still wrong, by place.
func (a *Agent) attachAgain(r attached, before []string) []string {
	if mounted, err := linux.MountBPFFS(a.bpffs); err != nil || mounted {
		a.options.Log.Warn("the bpf file system was gone", "directory", a.bpffs, "mounted again",
			mounted, "error", err)
	}
	failure := r.program.Reattach()
	r.runsAt(r.program.Attachments())
	after := a.attachedRole(r.role)
	still, err := after.faults(after.on)
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

func (a *Agent) attachedRole(role string) attached {
	roles := a.attachedRoles()
	return roles[slices.IndexFunc(roles, func(r attached) bool { return r.role == role })]
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
func (a *Agent) processes(role string) bool {
	for key := range a.faults {
		if key.role == role {
			return false
		}
	}
	return true
}

// faultAt is what status shows beside a program.
func (a *Agent) faultAt(role string, at datapath.Attachment) string {
	return a.faults[placeKey{role, at.Program, at.On}]
}

// arrivals are the attachments at which packets for the VRFs arrive, and those on VRF devices that
// are there: these come and go.
func (s *straysRole) arrivals() []datapath.Attachment {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.attachments), func(at datapath.Attachment) bool {
		_, gone := net.InterfaceByName(at.On)
		return gone != nil && !slices.ContainsFunc(s.config.Interfaces,
			func(i datapath.StrayInterface) bool { return i.Name == at.On })
	})
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
