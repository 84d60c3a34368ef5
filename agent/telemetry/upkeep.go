package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
)

const (
	// clockInterval is between looks at how far apart the machine's clocks are.
	clockInterval = 10 * time.Second
	// useInterval is the time over which the utilization of a link is taken that the programs do
	// not meter.
	useInterval = 100 * time.Millisecond
	// linkInterval is between looks at a link that they meter, and at what the queues of links are:
	// its rate and its queue may become others.
	linkInterval = 5 * time.Second
	perMillion   = 1e6
)

// A link is behind an interface by which packets with telemetry leave.
type link struct {
	name     string
	rateKbps int // 0: as the driver says
}

// linksOf are the links whose utilization nodes may ask for.
func linksOf(t *config.Telemetry) (list []link) {
	names := slices.Clone(t.Transit)
	if t.Source != nil {
		names = append(names, t.Source.Interfaces...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		one := link{name: name}
		for _, given := range t.Links {
			if given.Interface == name {
				one.rateKbps = given.RateKbps
			}
		}
		list = append(list, one)
	}
	return list
}

// use is what an interface had sent at a time.
type use struct {
	linux.LinkUse
	at      time.Duration
	metered bool          // by the programs
	queueAt time.Duration // when that is looked at again
	ppm     uint32        // since the look before
	known   bool          // ppm
}

// next is when the interface is looked at again.
func (u use) next() time.Duration {
	if u.metered {
		return u.queueAt
	}
	return u.at + useInterval
}

// utilization is the share of the rate that was used between two looks, in parts per million. It is
// false if it is not known.
func utilization(before, now use, rateKbps int) (ppm uint32, known bool) {
	rateKbps = cmp.Or(rateKbps, now.RateKbps)
	elapsed := (now.at - before.at).Seconds()
	if rateKbps == 0 || elapsed <= 0 || before.Index != now.Index ||
		now.SentOctets < before.SentOctets {
		return 0, false
	}
	rate := 8 * float64(now.SentOctets-before.SentOctets) / elapsed
	return uint32(math.Round(min(1, rate/(1000*float64(rateKbps))) * perMillion)), true
}

// Due is when clocks or links are looked at again: NTP moves POSIX time against the TAI that
// programs read.
func (r *Room) Due() (wait time.Duration, waits bool) {
	at := r.clockAt
	if r.Runs != nil && len(r.Runs.links) > 0 {
		at = min(at, r.usesAt)
	}
	return at - r.Now(), r.Runs != nil
}

// Act tells the programs how far apart the clocks are, and how much of the links is used.
func (r *Room) Act() {
	now := r.Now()
	if now >= r.clockAt {
		r.clockAt = now + clockInterval
		if err := r.Runs.Program.SetClock(); err != nil {
			r.Log.Warn("times in IOAM may be wrong; tried again", "error", err, "after",
				clockInterval)
		}
	}
	if now >= r.usesAt {
		r.lookAtLinks()
		if err := errors.Join(r.Runs.Program.SetRates(r.rates()),
			r.Runs.Program.SetUtilization(r.used())); err != nil {
			r.Log.Warn("the utilization of links may be wrong; tried again", "error", err,
				"after", r.usesAt-now)
		}
	}
}

// lookAgain makes the next act look at all links: their rates or the programs may be others.
func (r *Room) lookAgain() {
	r.usesAt = 0
	for name, u := range r.uses {
		u.queueAt = 0
		r.uses[name] = u
	}
}

// lookAtLinks looks at the links that are due. An interface that is not there is looked for as
// often as one that is not metered.
func (r *Room) lookAtLinks() {
	uses := map[string]use{}
	r.usesAt = r.Now() + linkInterval
	for _, l := range r.Runs.links {
		before, known := r.uses[l.name]
		if known && r.Now() < before.next() {
			uses[l.name] = before
			r.usesAt = min(r.usesAt, before.next())
			continue
		}
		now, err := r.lookAt(l.name)
		if err != nil {
			r.usesAt = min(r.usesAt, r.Now()+useInterval)
			continue
		}
		now.metered, now.queueAt = before.metered, before.queueAt
		if now.at >= now.queueAt || now.Index != before.Index {
			now.metered = datapath.KnowsQueues() && linux.CountsSent(l.name)
			now.queueAt = now.at + linkInterval
		}
		if known {
			now.ppm, now.known = utilization(before, now, l.rateKbps)
		}
		uses[l.name] = now
		r.usesAt = min(r.usesAt, now.next())
	}
	r.uses = uses
}

// rates are those of links, in kbit/s by the index of their interfaces.
func (r *Room) rates() map[uint32]int {
	kbps := map[uint32]int{}
	for _, l := range r.Runs.links {
		if u, there := r.uses[l.name]; there {
			kbps[uint32(u.Index)] = cmp.Or(l.rateKbps, u.RateKbps)
		}
	}
	return kbps
}

// used is the utilization of links by the index of their interfaces, as far as it is known.
func (r *Room) used() map[uint32]uint32 {
	ppm := map[uint32]uint32{}
	for _, u := range r.uses {
		if u.known {
			ppm[uint32(u.Index)] = u.ppm
		}
	}
	return ppm
}

// lookAt reads what an interface has sent, and when. What took long, since another process had the
// processor, is read again: the time would not be that of the count.
func (r *Room) lookAt(name string) (u use, err error) {
	const tries, atOnce = 5, useInterval / 50
	for range tries {
		u.at = r.Now()
		if u.LinkUse, err = linux.ReadLinkUse(name); err != nil || r.Now()-u.at < atOnce {
			break
		}
	}
	return u, err
}

// withoutRate names the links whose utilization is not known.
func (r *Room) withoutRate() (list []string) {
	for _, l := range r.Runs.links {
		if l.rateKbps == 0 && r.uses[l.name].RateKbps == 0 {
			list = append(list, fmt.Sprintf("the driver of %s tells no rate: its utilization is "+
				"all ones; say it with telemetry.links", l.name))
		}
	}
	return list
}
