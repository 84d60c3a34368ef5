package health_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sextant/agent/health"
	"sextant/lb/pool"
)

// A world of few servers and one edge, in which every sequence of check results happens. Servers
// are checked in turn, one a second; what each check says is free. A server of dead has no
// connections and fails every check. Whoever is the first candidate of a bucket at some time has a
// connection there from then on.
type sequences struct {
	usage    health.Usage
	rules    health.Rules
	servers  int
	dead     uint // a bit per server
	length   int
	restart  int // after how many checks the edge starts empty
	panicked int // worlds in which there was a panic
	given    int // servers that were given up
	visited  int
}

type sequence struct {
	states  []health.State
	effect  health.Effect
	g       *pool.Generation
	owners  [sequenceBuckets]uint // servers with connections in the bucket
	results []bool                // of the checks so far: of server i those at i, i+servers, ...
}

const sequenceBuckets = 13

var sequenceSpec = pool.Spec{Buckets: sequenceBuckets, Candidates: 1}

// opinion is, from the results alone, whether a server is usable, its latest result, and at which
// check its status became that.
func (w *sequences) opinion(s *sequence, server int) (usable, latest bool, at int) {
	usable, latest, at = true, true, -1
	run := 0
	for i := server; i < len(s.results); i += w.servers {
		latest = s.results[i]
		if latest == usable {
			run = 0
			continue
		}
		run++
		if !usable && run == w.rules.Rise || usable && run == w.rules.Fall {
			usable, run, at = latest, 0, i
		}
	}
	return usable, latest, at
}

// explore tries both results of the next check, if it can have both.
func (w *sequences) explore(t *testing.T, s sequence) {
	w.visited++
	if len(s.results) == w.length {
		return
	}
	server := len(s.results) % w.servers
	for _, success := range []bool{true, false} {
		if success && w.dead>>server&1 == 1 {
			continue
		}
		next := s
		next.states = slices.Clone(s.states)
		next.states[server] = next.states[server].After(success, w.rules)
		next.results = append(slices.Clone(s.results), success)
		now := time.Duration(len(next.results)) * time.Second
		members := make([]health.Member, w.servers)
		for i := range members {
			members[i] = health.Member{
				Backend: pool.Backend{ID: uint16(i + 1), Weight: 1},
				Usable:  next.states[i].Usable(w.rules), Wavers: next.states[i].Run > 0,
			}
		}
		next.effect = w.usage.Apply(members, s.effect, now)
		var err error
		if next.g, err = s.g.Next(next.effect.Backends, now); len(next.results) == w.restart {
			next.g, err = pool.New(sequenceSpec, next.effect.Backends, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.judge(t, &s, &next)
		if t.Failed() {
			return
		}
		w.explore(t, next)
	}
}

func (w *sequences) judge(t *testing.T, before, s *sequence) {
	t.Helper()
	w.judgePanic(t, before, s)
	down := uint(0)
	for i, b := range s.effect.Backends {
		if b.State == pool.Down {
			down |= 1 << i
			if before.effect.Backends[i].State != pool.Down {
				w.given++
				w.judgeGivenUp(t, s, i)
			}
		}
	}
	if down != 0 && !w.usage.Kills {
		t.Fatalf("results %v: servers %b are down", s.results, down)
	}
	for bucket := range s.owners {
		c := s.g.Chain(bucket)
		for i := range w.servers {
			if s.owners[bucket]>>i&1 == 1 && down>>i&1 == 0 {
				w.judgeReach(t, s, bucket, i)
			}
		}
		s.owners[bucket] &^= down
		if c.Candidates > 0 && w.dead>>(c.IDs[0]-1)&1 == 0 {
			s.owners[bucket] |= 1 << (c.IDs[0] - 1)
		}
	}
}

// judgeReach sees that packets reach a server: it is named, and no server that is found to fail
// stands before it, unless it fails itself or a panic has the other one used.
func (w *sequences) judgeReach(t *testing.T, s *sequence, bucket, server int) {
	t.Helper()
	c := s.g.Chain(bucket)
	at := slices.Index(c.IDs[:c.Length], uint16(server+1))
	if at < 0 {
		t.Fatalf("results %v: server %d has connections in bucket %d, whose chain is %v",
			s.results, server+1, bucket, c.IDs[:c.Length])
	}
	if usable, _, _ := w.opinion(s, server); !usable || s.effect.Panic {
		return
	}
	for _, id := range c.IDs[:at] {
		if usable, _, _ := w.opinion(s, int(id-1)); !usable {
			t.Fatalf("results %v: chain %v of bucket %d names %d, which fails, before %d",
				s.results, c.IDs[:c.Length], bucket, id, server+1)
		}
	}
}

// judgePanic tells from the results what is to be thought of the checks.
func (w *sequences) judgePanic(t *testing.T, before, s *sequence) {
	t.Helper()
	usable, sound, rising, news := 0, 0, 0, -1
	fresh := false
	for i := range w.servers {
		is, latest, at := w.opinion(s, i)
		switch {
		case is:
			usable++
			if latest {
				sound++
			}
		case latest:
			rising++
		}
		news = max(news, at)
		fresh = fresh || !is && time.Duration(len(s.results)-1-at)*time.Second < w.usage.Round
	}
	few := func(n int) bool { return n*1000 < w.servers*w.usage.PanicPermille }
	was, is := before.effect.Panic, s.effect.Panic
	switch {
	case usable == w.servers && is:
		t.Fatalf("results %v: a panic, and none fails", s.results)
	case few(usable) && !is:
		t.Fatalf("results %v: no panic with %d of %d", s.results, usable, w.servers)
	case !was && fresh && few(sound) && usable < w.servers && !is:
		t.Fatalf("results %v: no panic, and the latest checks of all but %d failed as one was "+
			"given up",
			s.results, sound)
	case !was && is && !few(sound):
		t.Fatalf("results %v: a panic with %d of %d whose latest check succeeded", s.results, sound,
			w.servers)
	case was && !is && usable < w.servers && rising > 0:
		t.Fatalf("results %v: the panic ends while %d rise", s.results, rising)
	case was && !is && usable < w.servers &&
		time.Duration(len(s.results)-1-news)*time.Second < w.usage.Settle:
		t.Fatalf("results %v: the panic ends %d checks after the latest news", s.results,
			len(s.results)-1-news)
	}
	if is && !was {
		w.panicked++
	}
}

// judgeGivenUp sees that a server is given up only when each of the others was checked after it
// had failed, and enough of them work.
func (w *sequences) judgeGivenUp(t *testing.T, s *sequence, server int) {
	t.Helper()
	_, _, at := w.opinion(s, server)
	sound := 0
	for i := range w.servers {
		if usable, latest, _ := w.opinion(s, i); usable && latest {
			sound++
		}
	}
	if len(s.results)-1-at < w.servers {
		t.Fatalf("results %v: server %d is given up before all others were checked", s.results,
			server+1)
	}
}

// Whatever the checks say, in whatever order, no connection of a server that lives is given up,
// and none is led to a dead one before its own; panics begin and end as docs/howto/backends.md
// says; and where failing kills, that takes a round in which no panic begins.
func TestAllSequencesOfResults(t *testing.T) {
	for _, rules := range []health.Rules{{Rise: 1, Fall: 1}, {Rise: 2, Fall: 2},
		{Rise: 1, Fall: 2}} {
		for i := range 12 {
			const servers = 3
			w := &sequences{
				usage: health.Usage{
					PanicPermille: []int{500, 300}[i%2], Kills: i/2%2 == 1,
					Round:  servers * time.Second,
					Settle: time.Duration(servers*rules.Rise) * time.Second,
				},
				rules: rules, servers: servers, dead: uint(i / 4), length: 13, restart: 11,
			}
			t.Run(fmt.Sprintf("%+v %+v dead %02b", rules, w.usage, w.dead), func(t *testing.T) {
				t.Parallel()
				w.run(t)
				if w.panicked == 0 || w.usage.Kills && w.given == 0 {
					t.Errorf("%d panics, %d servers given up in %d worlds", w.panicked, w.given,
						w.visited)
				}
			})
		}
	}
}

func (w *sequences) run(t *testing.T) {
	t.Helper()
	var backends []pool.Backend
	var members []health.Member
	for i := range w.servers {
		backends = append(backends, pool.Backend{ID: uint16(i + 1), Weight: 1})
		members = append(members, health.Member{Backend: backends[i], Usable: true})
	}
	g, err := pool.New(sequenceSpec, backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := sequence{states: make([]health.State, w.servers),
		effect: w.usage.Apply(members, health.Effect{}, 0), g: g}
	w.explore(t, s)
}
