package headend

import (
	"fmt"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// settleTraffic counts what has come since it was last read for the lists that have the places now.
func (h *Room) settleTraffic() {
	if h.Runs == nil {
		return
	}
	for _, p := range h.Runs.Steering.Policies {
		if s := h.Store.Kept.Steered[p.Name]; s != nil {
			h.countTraffic(s, p)
		}
	}
}

func (h *Room) countTraffic(s *state.Steered, p srpolicy.Policy) {
	if err := readTraffic(s, h.Runs.Program, p.Index); err != nil {
		h.Log.Warn("a policy's packets can't be counted", "policy", p.Name, "error", err)
	}
}

// readTraffic counts what has come since.
func readTraffic(s *state.Steered, program *datapath.Headend, index uint32) error {
	now, err := program.ListTraffic(index)
	if err != nil {
		return err
	}
	for i, t := range now {
		before := datapath.Traffic{}
		if i < len(s.Seen) && s.Seen[i].Packets <= t.Packets {
			before = s.Seen[i]
		}
		if i < len(s.Lists) {
			of := countersOfList(s, s.Path, s.Lists[i])
			of.Packets += t.Packets - before.Packets
			of.Bytes += t.Bytes - before.Bytes
		}
	}
	s.Seen = now
	return nil
}

// countersOfList returns the counters of a list in a path.
func countersOfList(s *state.Steered, path, list string) *datapath.Traffic {
	if s.Counted[path] == nil {
		s.Counted[path] = map[string]*datapath.Traffic{}
	}
	if s.Counted[path][list] == nil {
		s.Counted[path][list] = &datapath.Traffic{}
	}
	return s.Counted[path][list]
}

// noteSteered writes down what switchLists finds.
func (h *Room) noteSteered() {
	if !h.switchLists() {
		return
	}
	if err := h.Store.Write(); err != nil {
		h.Log.Warn("a restarted agent will count packets of policies for the wrong "+
			"segment lists", "error", err)
	}
}

// switchLists notes which lists have which places from now on, reports whether that is news, and
// tells of policies that go another way than before.
func (h *Room) switchLists() (changed bool) {
	before := h.Store.Kept.Steered
	h.Store.Kept.Steered = map[string]*state.Steered{}
	if h.Runs == nil {
		return len(before) > 0
	}
	for _, p := range h.Runs.Steering.Policies {
		s := before[p.Name]
		if s == nil {
			s = &state.Steered{Counted: map[string]map[string]*datapath.Traffic{}}
			s.Path, s.Lists = usedLists(p, "")
			changed = true
			h.countTraffic(s, p)
			// what was there was another policy's
			s.Counted = map[string]map[string]*datapath.Traffic{}
		}
		h.Store.Kept.Steered[p.Name] = s
		path, lists := usedLists(p, s.Path)
		if path != s.Path || !slices.Equal(lists, s.Lists) {
			changed = true
			h.countTraffic(s, p)
			s.Path, s.Lists = path, lists
			h.Tell(steeredEvent(p, path, lists))
		}
	}
	return changed || len(before) != len(h.Store.Kept.Steered)
}

// usedLists are the active path and those of its lists that packets take.
func usedLists(p srpolicy.Policy, installed string) (path string, lists []string) {
	active, ok := p.Active(installed)
	if !ok {
		return "", nil
	}
	if active.Action == srpolicy.Path {
		active.Lists = active.Lists[:1]
	}
	for _, l := range active.Lists {
		lists = append(lists, l.Name)
	}
	return active.Name, lists
}

func steeredEvent(p srpolicy.Policy, path string, lists []string) api.Event {
	if path != "" {
		return api.Event{Policy: p.Name, Path: path, Status: "active",
			Reason: "over " + strings.Join(lists, ", ")}
	}
	fate := "forwarded as if there were no policy"
	if p.DropIfInvalid {
		fate = "dropped"
	}
	return api.Event{Policy: p.Name, Status: "invalid",
		Reason: fmt.Sprintf("no path has enough lists that are up; packets are %s", fate)}
}
