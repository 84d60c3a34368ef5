package protection

import (
	"cmp"
	"slices"
	"strings"
)

// MaxSlots is how many lists of a protection are known at a time: the egress tells so many apart.
// The number of a list's slot is part of what its packets are numbered by, so a list keeps it as
// long as it is known.
const MaxSlots = 8

// Answer is what probes say of a list.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // not asked yet
	Answers               // probes come back
	Silent                // they stopped coming back
)

// Slot is a list that is known.
type Slot struct {
	Path   Path
	Used   bool
	Rank   int // place in the plan, from 0; outside of the plan: NoRank
	Answer Answer
	Trial  bool   // it came as a replacement and has not answered yet
	Fault  string // why the network says that it can't carry; "": it does not say so
	Trials Trials // while it is silent
}

// NoRank is the rank of a list that the plan does no longer have: it carries until those of the
// plan do, or is watched as long as it is silent, to be known when it is back.
const NoRank = -1

// State is a protection in operation.
type State struct {
	Intent Intent
	Slots  [MaxSlots]Slot
	Around []Link // what the plan was computed around
}

// New begins with a plan.
func New(i Intent, p Plan) State {
	s := State{Intent: i}
	for rank, path := range p.Paths {
		s.Slots[rank] = Slot{Path: path, Used: true, Rank: rank}
	}
	return s
}

// Probed notes whether a list's probes come back.
func (s State) Probed(slot int, answers bool) State {
	l := &s.Slots[slot]
	if !l.Used {
		return s
	}
	if l.Answer = Silent; answers {
		l.Answer, l.Trial = Answers, false
	}
	return s.settled()
}

// Checked notes what the network says of each list: fault returns why it can't carry, or "".
func (s State) Checked(fault func(Path) string) State {
	for i := range s.Slots {
		if l := &s.Slots[i]; l.Used {
			l.Fault = fault(l.Path)
		}
	}
	return s.settled()
}

// Adopt takes a plan that was computed around some links. Lists that the plan keeps, keep their
// slots; new ones carry when they answer, or when nothing better is left. Where slots are short,
// lists that are not needed any more make room, and at last spares of the plan are left out.
func (s State) Adopt(p Plan, around []Link) State {
	s.Around = around
	for i := range s.Slots {
		s.Slots[i].Rank = NoRank
	}
	var fresh []int
	for rank, path := range p.Paths {
		i := slices.IndexFunc(s.Slots[:], func(l Slot) bool { return l.Used && l.Path.Same(path) })
		if i < 0 {
			fresh = append(fresh, rank)
			continue
		}
		s.Slots[i].Rank, s.Slots[i].Path = rank, path
	}
	carrying := s.Carrying()
	for _, rank := range fresh {
		if i, ok := s.room(carrying); ok {
			s.Slots[i] = Slot{Path: p.Paths[rank], Used: true, Rank: rank, Trial: true}
		}
	}
	return s.settled()
}

// room finds a slot that is free, or whose list is not needed.
func (s State) room(carrying []int) (int, bool) {
	for i, l := range s.Slots {
		if !l.Used {
			return i, true
		}
	}
	for i, l := range s.Slots {
		if l.Rank == NoRank && !slices.Contains(carrying, i) {
			return i, true
		}
	}
	return 0, false
}

// settled releases lists that neither the plan nor the traffic needs: once all copies travel over
// lists of the plan, or when the network has taken them away. Silent ones are watched on; those
// that answer again are for the next plan to choose.
func (s State) settled() State {
	carrying := s.Carrying()
	whole := len(carrying) == s.Intent.Copies && !s.Due()
	for _, i := range carrying {
		whole = whole && s.Slots[i].Rank != NoRank
	}
	for i, l := range s.Slots {
		if l.Used && l.Rank == NoRank && (l.Fault != "" || whole && l.Answer != Silent) {
			s.Slots[i] = Slot{}
		}
	}
	return s
}

// ReturnSuspected tells that all lists are silent at once. Then it is the way back of the probes
// that has failed, rather than all lists, and nothing is switched off.
func (s State) ReturnSuspected() bool {
	usable, silent := 0, 0
	for _, l := range s.Slots {
		if l.Used && l.Fault == "" {
			usable++
			if l.Answer == Silent {
				silent++
			}
		}
	}
	return usable > 1 && silent == usable
}

// Carrying are the slots over which packets travel now, the best first: at most as many as copies
// are wanted, no two of which share what they must not. A list that is silent carries only if
// nothing else is left.
func (s State) Carrying() []int {
	class := func(l Slot) int {
		switch {
		case l.Rank != NoRank && !l.Trial:
			return 0
		case l.Rank == NoRank && l.Answer == Answers:
			return 1
		case l.Rank != NoRank:
			return 2
		}
		return 3
	}
	var order []int
	speaking := slices.ContainsFunc(s.Slots[:],
		func(l Slot) bool { return l.Used && l.Fault == "" && l.Answer != Silent })
	for i, l := range s.Slots {
		if l.Used && l.Fault == "" && (l.Answer != Silent || !speaking) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(class(s.Slots[a]), class(s.Slots[b])),
			cmp.Compare(s.Slots[a].Rank, s.Slots[b].Rank))
	})
	var carrying []int
	for _, i := range order {
		meets := func(j int) bool {
			return s.Slots[i].Path.meets(s.Slots[j].Path,
				s.Intent.Disjoint)
		}
		if len(carrying) < s.Intent.Copies && !slices.ContainsFunc(carrying, meets) {
			carrying = append(carrying, i)
		}
	}
	return carrying
}

// Avoid is what a plan should be computed around, as far as the network itself does not know: the
// links of silent lists that no list with an answer crosses, in a fixed order.
func (s State) Avoid() []Link {
	if s.ReturnSuspected() {
		return s.Around
	}
	var links []Link
	for _, l := range s.Slots {
		if !l.Used || l.Answer != Silent || l.Fault != "" {
			continue
		}
		for _, link := range l.Path.Links {
			if !s.answered(link) {
				links = append(links, lesser(link, link.Reverse()))
			}
		}
	}
	slices.SortFunc(links, compareLinks)
	return slices.Compact(links)
}

// answered tells whether probes come back over a link.
func (s State) answered(link Link) bool {
	return slices.ContainsFunc(s.Slots[:], func(l Slot) bool {
		return l.Used && l.Answer == Answers && l.Path.Crosses(link)
	})
}

func compareLinks(a, b Link) int {
	return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To),
		cmp.Compare(a.Number, b.Number))
}

func lesser(a, b Link) Link {
	if compareLinks(a, b) <= 0 {
		return a
	}
	return b
}

// Due tells whether a new plan is wanted because of what probes say.
func (s State) Due() bool { return !slices.Equal(s.Avoid(), s.Around) }
