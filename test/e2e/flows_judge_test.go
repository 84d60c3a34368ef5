package e2e_test

import (
	"slices"
	"testing"
)

const mostWrongFlows = 5 // that are told of

// flowJudge compares what left the edge with what was expected.
type flowJudge struct {
	t                    *testing.T
	wire                 *flowWire
	packets, wrong       int
	long, passing, moved int // packets of chains with previous owners; in a change; by the new one
	deferred             []deferredFlow
}

// deferredFlow is a packet of which it is not known yet what was to become of it.
type deferredFlow struct {
	f      *flow
	opens  bool
	at     flowSight
	phase  string
	places [2]int
}

// pass sends flows, but those left out, and judges each packet.
func (j *flowJudge) pass(phase string, flows []flow, leaveOut func(*flow) bool) {
	j.t.Helper()
	missing, sent := 0, 0
	for i, s := range j.wire.pass(flows, leaveOut) {
		if !s.was {
			continue
		}
		sent++
		f := &flows[i/kinds]
		if !s.came {
			if missing++; missing <= mostWrongFlows {
				j.t.Errorf("%s: a packet is missing: %v", phase, f)
			}
			continue
		}
		j.judge(deferredFlow{f, i%kinds == 0, s, phase,
			[2]int{f.service.place(int(s.sent)), f.service.place(int(s.started))}})
	}
	if missing > 0 {
		j.t.Fatalf("%s: %d of %d packets are missing, the interfaces have lost %d", phase, missing,
			sent, j.wire.dropped())
	}
	j.t.Logf("%s: %d packets", phase, sent)
}

// judge looks at a packet: any version counts that may have been the service's.
func (j *flowJudge) judge(d deferredFlow) {
	j.t.Helper()
	if len(d.f.want) <= d.places[1] { // table exact
		j.deferred = append(j.deferred, d)
		return
	}
	j.packets++
	if d.places[0] != d.places[1] {
		j.passing++
	}
	for place := d.places[0]; place <= d.places[1]; place++ {
		want := d.f.want[place]
		if ids := want.leaving(d.opens, d.f.service.protocol); ids == d.at.ids {
			if !d.opens && want.length > want.candidates {
				j.long++
			}
			if place > 0 && want != d.f.want[place-1] {
				j.moved++
			}
			return
		}
	}
	if j.wrong++; j.wrong <= mostWrongFlows {
		j.t.Errorf("%s, change %d to %d: %v, opening %v: went to %x; its chains are %x", d.phase,
			d.at.sent, d.at.started, d.f, d.opens, d.at.ids,
			d.f.want[d.places[0]:d.places[1]+1])
	}
}

// leaving are the ids that the destination of a packet has: of one that opens a connection the
// candidates, of others the chain, of UDP the first candidate.
func (e expected) leaving(opens bool, protocol string) (ids [6]uint16) {
	n := e.length
	switch {
	case protocol == "udp":
		n = min(1, e.candidates)
	case opens:
		n = e.candidates
	}
	copy(ids[:n], e.ids[:])
	return ids
}

// exact learns whom a service with table exact has in each bucket now, and sees that shares are
// right to within one bucket, and that no bucket moved whose owner goes on.
func (j *flowJudge) exact(s *flowService, flows []flow) {
	j.t.Helper()
	place := len(s.versions) - 1
	if flows[slices.IndexFunc(flows, func(f flow) bool { return f.service == s })].want == nil {
		place = 0
	}
	v := &s.versions[place]
	owned := map[uint16]int{}
	for i := range flows {
		f := &flows[i]
		if f.service != s {
			continue
		}
		now := j.wire.sights[kinds*i].ids[0]
		e := expected{candidates: 1}
		e.push(now, 6)
		if owned[now]++; place > 0 {
			before := f.want[0].ids[0]
			if stays := v.state(before) == "up"; stays && now != before {
				j.t.Errorf("bucket %d of table exact went from %x to %x", f.bucket, before, now)
			}
			e.push(before, 6)
		}
		f.want = append(f.want, e)
	}
	for _, b := range v.backends {
		n := len(v.backends)
		if b.state != "up" {
			continue
		}
		for _, other := range v.backends {
			if other.state != "up" {
				n--
			}
		}
		if share := owned[b.id]; share != s.buckets/n && share != s.buckets/n+1 {
			j.t.Errorf("backend %x has %d of %d buckets, one of %d", b.id, share, s.buckets, n)
		}
		delete(owned, b.id)
	}
	if len(owned) > 0 {
		j.t.Errorf("others have buckets, too: %v", owned)
	}
}

// later judges what could not be judged before.
func (j *flowJudge) later() {
	j.t.Helper()
	deferred := j.deferred
	j.deferred = nil
	for _, d := range deferred {
		j.judge(d)
	}
}

func (j *flowJudge) end() {
	j.t.Helper()
	for i, what := range j.wire.strange {
		if i < mostWrongFlows {
			j.t.Errorf("what should not be left the edge: %s", what)
		}
	}
	j.t.Logf("%d packets, wrong %d, strange %d; %d to previous owners too, %d while their service "+
		"changed, %d otherwise than before a change; interfaces lost %d", j.packets, j.wrong,
		len(j.wire.strange), j.long, j.passing, j.moved, j.wire.dropped())
	if j.wrong > mostWrongFlows {
		j.t.Errorf("%d of %d packets went elsewhere", j.wrong, j.packets)
	}
	if len(j.deferred) > 0 || j.long == 0 || j.passing == 0 || j.moved == 0 {
		j.t.Error("nothing was tested: no packet went to previous owners, or met a change")
	}
}
