package agent

import (
	"fmt"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// steered is what traffic a policy had. The kernel counts by the place of a list in the active
// path; here it is told whose place that was. Packets on their way in the moment of a switch-over
// can be counted for the wrong list.
type steered struct {
	// the active one; "": none is valid
	Path  string   `json:"path"`
	Lists []string `json:"lists"` // of it, in the kernel's order
	// of the places, when they were read last
	Seen    []datapath.Traffic                      `json:"seen"`
	Counted map[string]map[string]*datapath.Traffic `json:"counted"`
}

// activePaths are those that run, by policy.
func (k kept) activePaths() map[string]string {
	active := map[string]string{}
	for name, s := range k.Steered {
		active[name] = s.Path
	}
	return active
}

// settleTraffic counts what has come since it was last read for the lists that have the places now.
func (h *headendRoom) settleTraffic() {
	if h.runs == nil {
		return
	}
	for _, p := range h.runs.steering.policies {
		if s := h.store.kept.Steered[p.Name]; s != nil {
			h.countTraffic(s, p)
		}
	}
}

func (h *headendRoom) countTraffic(s *steered, p srpolicy.Policy) {
	if err := s.read(h.runs.program, p.Index); err != nil {
		h.options.Log.Warn("a policy's packets can't be counted", "policy", p.Name, "error", err)
	}
}

func (s *steered) read(program *datapath.Headend, index uint32) error {
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
			of := s.of(s.Path, s.Lists[i])
			of.Packets += t.Packets - before.Packets
			of.Bytes += t.Bytes - before.Bytes
		}
	}
	s.Seen = now
	return nil
}

// of returns the counters of a list in a path.
func (s *steered) of(path, list string) *datapath.Traffic {
	if s.Counted[path] == nil {
		s.Counted[path] = map[string]*datapath.Traffic{}
	}
	if s.Counted[path][list] == nil {
		s.Counted[path][list] = &datapath.Traffic{}
	}
	return s.Counted[path][list]
}

// noteSteered writes down what switchLists finds.
func (h *headendRoom) noteSteered() {
	if !h.switchLists() {
		return
	}
	if err := h.store.write(); err != nil {
		h.options.Log.Warn("a restarted agent will count packets of policies for the wrong "+
			"segment lists", "error", err)
	}
}

// switchLists notes which lists have which places from now on, reports whether that is news, and
// tells of policies that go another way than before.
func (h *headendRoom) switchLists() (changed bool) {
	before := h.store.kept.Steered
	h.store.kept.Steered = map[string]*steered{}
	if h.runs == nil {
		return len(before) > 0
	}
	for _, p := range h.runs.steering.policies {
		s := before[p.Name]
		if s == nil {
			s = &steered{Counted: map[string]map[string]*datapath.Traffic{}}
			s.Path, s.Lists = usedLists(p, "")
			changed = true
			h.countTraffic(s, p)
			// what was there was another policy's
			s.Counted = map[string]map[string]*datapath.Traffic{}
		}
		h.store.kept.Steered[p.Name] = s
		path, lists := usedLists(p, s.Path)
		if path != s.Path || !slices.Equal(lists, s.Lists) {
			changed = true
			h.countTraffic(s, p)
			s.Path, s.Lists = path, lists
			h.tell(steeredEvent(p, path, lists))
		}
	}
	return changed || len(before) != len(h.store.kept.Steered)
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
