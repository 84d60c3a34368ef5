package headend

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/southbound"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/te/srpolicy"
)

// groupCapacity is how many prefixes can have groups.
func groupCapacity(c *config.Headend) int {
	if c.Spread == 0 {
		return 0
	}
	return datapath.FlowGroups
}

// SetGroups is what southbound.Headend says.
func (t flowTable) SetGroups(ctx context.Context, groups []southbound.Group) (failures []error) {
	if err := t.headend.Do(ctx, func() { failures = t.headend.setGroups(groups) }); err != nil {
		return slices.Repeat([]error{err}, len(groups))
	}
	return failures
}

// ClearGroup is what southbound.Headend says.
func (t flowTable) ClearGroup(ctx context.Context, prefix netip.Prefix) (err error) {
	doErr := t.headend.Do(ctx, func() {
		if err = errNoHeadend; t.headend.Runs != nil {
			err = flowPathError(t.headend.Runs.Program.RemoveGroup(prefix))
		}
	})
	return errors.Join(doErr, err)
}

// setGroups has all groups that can be compiled set together.
func (h *Room) setGroups(groups []southbound.Group) []error {
	failures := make([]error, len(groups))
	if h.Runs == nil {
		return slices.Repeat([]error{errNoHeadend}, len(groups))
	}
	var compiled []datapath.Group
	var places []int
	for i, g := range groups {
		c, err := compileGroup(g, h.Runs.Program.Source())
		if failures[i] = err; err == nil {
			compiled, places = append(compiled, c), append(places, i)
		}
	}
	for i, err := range h.Runs.Program.SetGroups(compiled) {
		failures[places[i]] = flowPathError(err)
	}
	return failures
}

func compileGroup(g southbound.Group, source srpolicy.Source) (datapath.Group, error) {
	out := datapath.Group{Prefix: g.Prefix, Flowlet: g.Flowlet, Hold: g.Hold}
	for _, p := range g.Paths {
		list := srpolicy.List{Segments: p.Segments, Reduced: true}
		header, err := list.Header(source)
		if err != nil {
			return out, &api.Error{Code: api.Invalid, Message: err.Error()}
		}
		out.Lists, out.Weights = append(out.Lists, header), append(out.Weights, p.Weight)
	}
	return out, nil
}

// tellGroups gives a model the groups that there are.
func (h *Role) tellGroups(m *model.Headend) error {
	groups, err := h.Program.Groups()
	for _, g := range groups {
		m.SetGroup(model.Group{Prefix: g.Prefix, Lists: g.Lists, Weights: g.Weights,
			Flowlet: g.Flowlet})
	}
	begun := time.Now()
	m.Clock = func() time.Duration { return time.Since(begun) }
	return err
}
