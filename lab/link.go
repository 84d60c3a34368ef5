package lab

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sextant/lab/netem"
)

// readLink reads one link, whose endpoints are written out.
func readLink(r *report, place string, doc linkDoc) LinkSpec {
	link := LinkSpec{MTU: doc.MTU, Seed: doc.Seed, Wire: WireKind(doc.Wire), place: place}
	if len(doc.Endpoints) != len(link.Ends) {
		r.add(place+".endpoints", `write both ends: ["client:eth0", "router:client"]`,
			"a link has two endpoints, not %d", len(doc.Endpoints))
		return link
	}
	for i, text := range doc.Endpoints {
		node, iface, ok := strings.Cut(text, ":")
		if !ok || node == "" || iface == "" {
			r.add(fmt.Sprintf("%s.endpoints[%d]", place, i),
				`write NODE:INTERFACE, like "client:eth0"`, "%q is no endpoint", text)
		}
		link.Ends[i] = Endpoint{node, iface}
	}
	var both netem.Profile
	readProfile(r, place, &both, doc.both())
	link.RateBits, link.BurstBytes, link.Latency = both.RateBits, both.BurstBytes, both.QueueTime
	both.RateBits, both.BurstBytes, both.QueueTime = 0, 0, 0
	readLatency(r, place, &link, doc)
	for side, own := range []struct {
		name string
		directionDoc
	}{{"forward", doc.Forward}, {"back", doc.Back}} {
		link.Impair[side] = both
		readProfile(r, join(place, own.name), &link.Impair[side], own.directionDoc)
		for at, weight := range map[string]*uint32{place: doc.Weight,
			join(place, own.name): own.Weight} {
			if weight != nil && *weight == 0 {
				r.add(at+".weight", "write a number from 1", "a weight can't be 0")
			}
		}
		switch {
		case own.Weight != nil:
			link.Weights[side] = *own.Weight
		case doc.Weight != nil:
			link.Weights[side] = *doc.Weight
		}
	}
	return link
}

// both is what both directions of a link have.
func (d linkDoc) both() directionDoc {
	return directionDoc{
		Delay: d.Delay, Jitter: d.Jitter, Loss: d.Loss, LossBurst: d.LossBurst,
		Duplicate: d.Duplicate, Reorder: d.Reorder,
		Rate: d.Rate, Burst: d.Burst, Queue: d.Queue,
	}
}

func readProfile(r *report, place string, p *netem.Profile, doc directionDoc) {
	for _, q := range []struct{ key, text string }{
		{"delay", doc.Delay}, {"jitter", doc.Jitter}, {"loss", doc.Loss},
		{"lossBurst", doc.LossBurst},
		{"duplicate", doc.Duplicate}, {"reorder", doc.Reorder}, {"rate", doc.Rate},
		{"burst", doc.Burst}, {"queue", doc.Queue},
	} {
		if q.text == "" {
			continue
		}
		if err := p.Set(q.key, q.text); err != nil {
			r.add(join(place, q.key), err.Error(), "%q is no %s", q.text, nounOf(q.key))
		}
	}
}

// nounOf is what a key's value is called.
func nounOf(key string) string {
	switch key {
	case "burst":
		return "size"
	case "lossBurst":
		return "length of a burst"
	case "loss", "duplicate", "reorder":
		return "share of packets"
	}
	return key
}

func readLatency(r *report, place string, link *LinkSpec, doc linkDoc) {
	if doc.Latency == "" {
		return
	}
	latency, err := time.ParseDuration(doc.Latency)
	if err != nil || latency <= 0 {
		r.add(place+".latency", "write a time above zero, like 50ms", "%q is no latency",
			doc.Latency)
	}
	if doc.Queue != "" {
		r.add(place+".latency", "delete one of the two", "latency and queue both bound the queue")
	}
	link.Latency = latency
}

// profiles are what happens to the packets of each end, in all.
func (l *LinkSpec) profiles() [2]netem.Profile {
	profiles := l.Impair
	for side := range profiles {
		p := &profiles[side]
		p.RateBits = cmp.Or(p.RateBits, l.RateBits)
		p.BurstBytes = cmp.Or(p.BurstBytes, l.BurstBytes)
		if p.QueuePackets == 0 && p.QueueTime == 0 {
			p.QueueTime = l.Latency
		}
	}
	return profiles
}

// impaired tells that the link is more than a veth pair, with a rate at most.
func (l *LinkSpec) impaired() bool {
	return l.Wire != "" || !l.Impair[0].Passes() || !l.Impair[1].Passes()
}

// weight is the cost of what an end sends.
func (l *LinkSpec) weight(side int) int { return int(max(1, l.Weights[side])) }
