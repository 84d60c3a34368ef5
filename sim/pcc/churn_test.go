package pcc

import (
	"errors"
	"testing"
	"time"

	"sextant/lb/pool"
)

// paperChurn is the paper's worst case: a server leaves or returns each second, under downloads of
// 10 MB.
func paperChurn(t testing.TB, servers int, policy pool.Policy, method pool.Method) Churn {
	t.Helper()
	life, err := ParseLife("10MB")
	if err != nil {
		t.Fatal(err)
	}
	return Churn{
		Spec:    pool.Spec{Buckets: 4099, Seed: 1, Policy: policy, Method: method, Candidates: 1},
		Servers: servers, MinUp: 1, Flap: time.Second, Leave: pool.Draining, Rate: 1000, Life: life,
		Flows: 200_000, Edges: 1, Seed: 1,
	}
}

func play(t *testing.T, c Churn) Result {
	t.Helper()
	r, err := Run(c, func(uint64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func cutShare(r Result) float64 { return float64(r.Cut) / float64(r.Flows) }

// As long as no more servers are away than the chain has places behind the candidates, policy offer
// with rendezvous cuts nothing: whoever had the bucket is one of its best.
func TestOfferCutsNothing(t *testing.T) {
	for name, change := range map[string]func(*Churn){
		"downloads": func(*Churn) {},
		"20 s": func(c *Churn) {
			c.Life = Life{median: 20 * time.Second,
				max: 20 * time.Second}
		},
		"two candidates": func(c *Churn) { c.MinUp, c.Spec.Candidates, c.Refuse = 4, 2, 0.3 },
		"two edges": func(c *Churn) {
			c.Edges, c.Lag, c.Restart = 2, 300*time.Millisecond,
				2*time.Second
		},
		"five edges": func(c *Churn) {
			c.Edges, c.Lag, c.Restart, c.Peer = 5, 300*time.Millisecond, 2*time.Second, true
		},
		"drain time":    func(c *Churn) { c.Spec.Drain = 21 * time.Second },
		"servers die":   func(c *Churn) { c.Leave = pool.Down },
		"one is enough": func(c *Churn) { c.MinUp = 1 },
		"two candidates, 20 s, one is enough": func(c *Churn) {
			c.MinUp, c.Spec.Candidates, c.Refuse, c.Life = 1, 2, 0.3,
				Life{median: 20 * time.Second, max: 20 * time.Second}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
			c.MinUp = 3
			change(&c)
			r := play(t, c)
			if r.Cut != 0 || r.Flows != c.Flows || r.Changes < 100 {
				t.Errorf("%d of %d flows cut by %d changes", r.Cut, r.Flows, r.Changes)
			}
			if (r.Died > 0) != (c.Leave == pool.Down) || (r.Restarts > 0) != (c.Restart > 0) {
				t.Errorf("%d flows died, %d restarts", r.Died, r.Restarts)
			}
		})
	}
	t.Run("100 servers", func(t *testing.T) {
		if r := play(t, paperChurn(t, 100, pool.Offer, pool.Rendezvous)); r.Cut != 0 ||
			r.Changes < 100 {
			t.Errorf("%d of %d flows cut by %d changes", r.Cut, r.Flows, r.Changes)
		}
	})
}

// The others cut what the paper and an earlier model with other tables say: of downloads of 10 MB,
// the paper lost 77 % by ECMP; the model lost 80 % by modulo and 34 % by consistent tables, and 31
// % and 17 % with a shadow of the whole table.
func TestOthersCut(t *testing.T) {
	for _, c := range []struct {
		policy   pool.Policy
		method   pool.Method
		from, to float64
	}{
		{pool.ECMP, pool.Modulo, 0.65, 0.85},
		{pool.ECMP, pool.Rendezvous, 0.25, 0.45},
		{pool.ECMP, pool.Exact, 0.25, 0.45},
		{pool.Shadow, pool.Modulo, 0.2, 0.4},
		{pool.Shadow, pool.Rendezvous, 0.1, 0.25},
		{pool.Shadow, pool.Exact, 0.1, 0.25},
	} {
		r := play(t, paperChurn(t, 8, c.policy, c.method))
		if share := cutShare(r); share < c.from || share > c.to {
			t.Errorf("%v, %v: %.3f cut, want %v to %v", c.policy, c.method, share, c.from, c.to)
		}
	}
}

// Where strays of nobody go round, as the paper has it word for word, connections pause and are not
// cut.
func TestCirclingStraysCutNothing(t *testing.T) {
	for _, method := range []pool.Method{pool.Modulo, pool.Rendezvous} {
		c := paperChurn(t, 8, pool.Shadow, method)
		marked := play(t, c)
		c.Circle = true
		circling := play(t, c)
		if marked.Cut == 0 || marked.Hops[0] != 0 || circling.Cut != 0 || circling.Hops[0] == 0 {
			t.Errorf("%v: %d cut and %v of packets lost; circling %d cut, %v lost",
				method, marked.Cut, marked.Hops[0], circling.Cut, circling.Hops[0])
		}
	}
}

// A packet whose connection is nowhere visits no more hosts than the chain holds; with a shadow
// two, else one.
func TestNoAmplification(t *testing.T) {
	for _, c := range []struct {
		policy pool.Policy
		depth  int
		most   int
	}{{pool.Offer, 6, 6}, {pool.Offer, 3, 3}, {pool.Shadow, 0, 2}, {pool.ECMP, 0, 1}} {
		churn := paperChurn(t, 8, c.policy, pool.Rendezvous)
		churn.Spec.Depth = c.depth
		churn.Leave = pool.Down
		churn.Flows = 50_000
		r := play(t, churn)
		if r.Died == 0 || r.MaxResetHops != c.most {
			t.Errorf("%v, chains of %d: %d flows died, RST after %d hosts, want %d", c.policy,
				c.depth, r.Died, r.MaxResetHops, c.most)
		}
		for hops := c.most + 1; hops < len(r.Hops); hops++ {
			if r.Hops[hops] != 0 {
				t.Errorf("%v: packets visited %d hosts", c.policy, hops)
			}
		}
	}
}

// Longer chains cut less, where they forget the oldest owner for a new one, as those of exact
// tables do.
func TestLongerChainsCutLess(t *testing.T) {
	before := 1.0
	for depth := 1; depth <= pool.MaxChain; depth++ {
		c := paperChurn(t, 8, pool.Offer, pool.Exact)
		c.Spec.Depth = depth
		share := cutShare(play(t, c))
		if share >= before {
			t.Errorf("chains of %d cut %.5f, those shorter by one %.5f", depth, share, before)
		}
		before = share
	}
}

// However many servers are away, chains of rendezvous that have no room left take no new owner, and
// cut nothing. The longer they are, the fewer flows go to servers that are leaving.
func TestFullChainsCutNothing(t *testing.T) {
	before := Result{Late: 1 << 62}
	for depth := 2; depth <= pool.MaxChain; depth++ {
		c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
		c.Spec.Depth = depth
		r := play(t, c)
		if r.Cut != 0 || r.Late >= before.Late || r.Late == 0 || r.Unopened != 0 {
			t.Errorf("chains of %d: %d cut, %d late, %d not opened; those shorter by one: %d late",
				depth, r.Cut, r.Late, r.Unopened, before.Late)
		}
		before = r
	}
}

// A chain of one host is ECMP.
func TestChainOfOneIsECMP(t *testing.T) {
	offer := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
	offer.Spec.Depth = 1
	if a, b := play(t, offer), play(t, paperChurn(t, 8, pool.ECMP, pool.Rendezvous)); a != b {
		t.Errorf("offer with chains of one: %+v; ecmp: %+v", a, b)
	}
}

// All flows are accounted for: their time is what they lived.
func TestTimeIsConserved(t *testing.T) {
	c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
	c.MinUp, c.Edges, c.Lag, c.Restart = 3, 3, 200*time.Millisecond, 3*time.Second
	c.Life = Life{median: 3 * time.Second, max: 3 * time.Second}
	r := play(t, c)
	var all time.Duration
	for _, d := range r.Hops {
		all += d
	}
	if want := time.Duration(r.Flows) * c.Life.max; all != want {
		t.Errorf("%d flows of %v: %v in all, want %v", r.Flows, c.Life.max, all, want)
	}
	if r.Redirected() <= 0 || r.Redirected() >= 1 {
		t.Errorf("redirected: %v", r.Redirected())
	}
	if again := play(t, c); again != r {
		t.Errorf("the same churn: %+v, then %+v", r, again)
	}
}

// A drain time shorter than the flows cuts them.
func TestDrainTimeTooShort(t *testing.T) {
	c := paperChurn(t, 8, pool.Offer, pool.Exact)
	c.Spec.Drain = time.Second
	with := play(t, c)
	c.Spec.Drain = 0
	if without := play(t, c); with.Cut <= 10*without.Cut {
		t.Errorf("%d cut with a drain time of 1 s, %d without", with.Cut, without.Cut)
	}
}

// A server that comes back draining, for a while, takes part later: fewer changes of owners, fewer
// redirected packets.
func TestHold(t *testing.T) {
	c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
	without := play(t, c)
	c.Hold = 5 * time.Second
	if with := play(t, c); with.Changes == without.Changes ||
		with.Redirected() >= without.Redirected() {
		t.Errorf("held: %d changes, %v redirected; else %d, %v", with.Changes, with.Redirected(),
			without.Changes, without.Redirected())
	}
}

func TestChurnRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Churn){
		"servers": func(c *Churn) { c.Servers = 0 }, "min up": func(c *Churn) { c.MinUp = 9 },
		"edges": func(c *Churn) { c.Edges = 0 },
		"leave": func(c *Churn) { c.Leave = pool.Up }, "flap": func(c *Churn) { c.Flap = 0 },
		"rate":   func(c *Churn) { c.Rate = 0 },
		"refuse": func(c *Churn) { c.Refuse = 2 }, "restart": func(c *Churn) { c.Restart = 1 },
		"life":  func(c *Churn) { c.Life = Life{} },
		"spec":  func(c *Churn) { c.Spec.Buckets = 0 },
		"table": func(c *Churn) { c.Spec.Method = pool.Modulo },
	} {
		c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
		spoil(&c)
		if _, err := Run(c, func(uint64) error { return nil }); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	stop := errors.New("stop")
	if _, err := Run(paperChurn(t, 8, pool.ECMP, pool.Modulo),
		func(uint64) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("progress wants to stop, got %v", err)
	}
}

func TestParseLife(t *testing.T) {
	for _, text := range []string{"5MB", "10mb", "20s"} {
		if _, err := ParseLife(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", "x", "0s", "-1s", "7MB"} {
		if l, err := ParseLife(text); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

func BenchmarkChurn(b *testing.B) {
	c := paperChurn(b, 100, pool.Offer, pool.Rendezvous)
	c.Spec.Buckets = 65537
	for b.Loop() {
		if _, err := Run(c, func(uint64) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// Clients use their ports again while servers have the connection before in TIME-WAIT. Nothing
// hangs, as these look at sequence numbers; if they took each packet of their ports, flows would.
func TestReusedPorts(t *testing.T) {
	for name, change := range map[string]func(*Churn){
		"offer":          func(*Churn) {},
		"two candidates": func(c *Churn) { c.Spec.Candidates, c.Refuse = 2, 0.3 },
		"two edges": func(c *Churn) {
			c.Edges, c.Lag, c.Restart = 2, 300*time.Millisecond,
				2*time.Second
		},
		"servers die": func(c *Churn) { c.Leave = pool.Down },
	} {
		t.Run(name, func(t *testing.T) {
			c := paperChurn(t, 8, pool.Offer, pool.Rendezvous)
			c.MinUp, c.Reuse, c.Flows = 3, 0.5, 100_000
			change(&c)
			r := play(t, c)
			if r.Cut != 0 || r.Hung != 0 || r.Reused < c.Flows/20 {
				t.Errorf("by numbers: %d cut, %d hung of %d on used ports", r.Cut, r.Hung, r.Reused)
			}
			c.matching = byPorts
			if r := play(t, c); r.Hung < r.Reused/1000 {
				t.Errorf("by ports: %d hung of %d on used ports: the test does nothing", r.Hung,
					r.Reused)
			}
		})
	}
}
