package controller

import (
	"testing"

	"sextant/agent/southbound"
)

// What is kept of flows that are forgotten for others goes with them: of each path that is given
// then, one is left, and the outbox of a head-end that reads nothing holds what still waits.
func TestForgottenFlowsLeaveNothing(t *testing.T) {
	const flows, left = 20_000, 10
	c := idle(t, edges(t, "a b 1\n"), "")
	s := &session{out: newOutbox()}
	c.gifts.heads["a"] = &head{session: s}
	for i := range flows {
		f := tuple(t, uint16(i+1))
		c.gifts.flows[f] = &given{router: "a", number: uint64(i)}
		c.gifts.renewals = append(c.gifts.renewals, renewal{flow: f, number: uint64(i)})
		s.out.put(f, &southbound.Path{Flow: f})
		if i >= left {
			c.forgotten(tuple(t, uint16(i+1-left)))
		}
	}
	if len(c.gifts.flows) != left || len(c.gifts.renewals) > 2*left+forgottenMost+1 ||
		len(s.out.paths) != left || len(s.out.order) > 2*left+forgottenMost+1 ||
		c.status().FlowsReplaced != flows-left {
		t.Errorf("%d paths, %d renewals, %d waiting, %d in order, %d replaced", len(c.gifts.flows),
			len(c.gifts.renewals), len(s.out.paths), len(s.out.order), c.status().FlowsReplaced)
	}
	// one that waits again is sent once, in its new place
	again := tuple(t, flows)
	s.out.forget(again)
	s.out.put(again, nil)
	change, sent := s.out.take(1, flows, 1)
	if len(change.Set) != left-1 || len(change.Clear) != 1 || len(sent) != left {
		t.Errorf("%d set, %d cleared, %d flows", len(change.Set), len(change.Clear), len(sent))
	}
	if change, _ := s.out.take(2, flows, 1); change != nil {
		t.Errorf("%v is left", change)
	}
}
