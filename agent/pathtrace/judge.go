package pathtrace

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
)

// Count is how many probes were sent, and how many of them were answered.
type Count struct{ Sent, Answered int }

func (c Count) lost() int { return c.Sent - c.Answered }

func (c Count) plus(o Count) Count { return Count{c.Sent + o.Sent, c.Answered + o.Answered} }

// Loss is the share of probes that were not answered.
func (c Count) Loss() float64 {
	if c.Sent == 0 {
		return 0
	}
	return float64(c.lost()) / float64(c.Sent)
}

// likelihood is the logarithm of how likely the count is, at the loss that makes it most likely.
func (c Count) likelihood() float64 {
	sum := 0.0
	for _, n := range []int{c.lost(), c.Answered} {
		if n > 0 {
			sum += float64(n) * math.Log(float64(n)/float64(c.Sent))
		}
	}
	return sum
}

// strong is how much likelier, as a logarithm, two rates of loss have to be than one: chance alone
// comes so far once in some 10,000 times.
const strong = 7.5

// certain is how much likelier, as a logarithm, a place has to be than any other one: of 100,000
// onsets of a loss of one half, 5 are elsewhere, and 49 at the measure strong.
const certain = 10

// gain is how much likelier two rates of loss are than one, as a logarithm.
func gain(a, b Count) float64 {
	return a.likelihood() + b.likelihood() - a.plus(b).likelihood()
}

// Lossy picks the paths on which more probes are lost than on the others; all, if they lose alike.
func Lossy(paths []Count) (lossy []int) {
	order := make([]int, len(paths))
	var all, worse Count
	for i, c := range paths {
		order[i] = i
		all = all.plus(c)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(paths[b].Loss(), paths[a].Loss())
	})
	best, cut := strong, 0
	for i, path := range order {
		worse = worse.plus(paths[path])
		rest := Count{all.Sent - worse.Sent, all.Answered - worse.Answered}
		if rest.Sent == 0 && cut == 0 { // as if there were one more, which loses nothing
			rest = Count{paths[path].Sent, paths[path].Sent}
		}
		if g := gain(worse, rest); rest.Sent > 0 && g > best {
			best, cut = g, i+1
		}
	}
	lossy = order[:cut]
	slices.Sort(lossy)
	return lossy
}

// Onset is where losses begin along a path, of counts of probes that were to be answered by the
// first router, the second, and so on: the link in front of that router, counted from 0, loses. It
// is -1 if none does more than others, and sure if it is as much likelier than any other place. A
// router that never answers, while others behind it do, says nothing.
func Onset(hops []Count) (at int, sure bool) {
	if len(hops) == 0 {
		return -1, false
	}
	hops = slices.Clone(hops)
	for i := range hops {
		if hops[i].Answered == 0 && slices.ContainsFunc(hops[i:],
			func(c Count) bool { return c.Answered > 0 }) {
			hops[i] = Count{}
		}
	}
	near, far := Count{hops[0].Sent, hops[0].Sent}, Count{} // the source itself loses nothing
	for _, c := range hops {
		far = far.plus(c)
	}
	best, second := 0.0, 0.0
	for i, c := range hops {
		g := 0.0
		if far.Loss() > near.Loss() {
			g = gain(near, far)
		}
		switch {
		case i > 0 && hops[i-1].Sent == 0: // the same counts on either side as at the place before
		case g > best:
			best, second, at = g, best, i
		default:
			second = max(second, g)
		}
		near, far = near.plus(c), Count{far.Sent - c.Sent, far.Answered - c.Answered}
	}
	if best <= strong {
		return -1, false
	}
	return at, best-second > certain
}

// Asked are the routers that answered behind a router which was asked for one of its next hops,
// each time with another selector.
type Asked map[int][]netip.Addr

// leastAnswers is how many answers a router has to give for an index to be believed that it
// follows.
const leastAnswers = 8

// Follows says whether a router does as selectors ask: then the same index leads to the same next
// router each time. Known is false if too few answers came to say so.
func (a Asked) Follows() (follows, known bool) {
	for _, from := range a {
		if slices.ContainsFunc(from, func(o netip.Addr) bool { return o != from[0] }) {
			return false, true
		}
		known = known || len(from) >= leastAnswers
	}
	return known, known
}
