package reroute

import (
	"math"
	"math/rand/v2"
	"slices"

	"sextant/te/topology"
)

// decide makes the decision on a flow. It returns whether the flow is to be left alone afterwards.
func (d *Decider) decide(out *Decision, r *Report, f *Flow, random *rand.PCG) bool {
	out.Flow, out.From, out.To, out.Class, out.At = r.Flow, r.From, r.To, r.Class, r.At
	current := r.Path
	if len(current) == 0 {
		current = f.Path
	}
	d.current = d.weights.Links(d.current[:0], current, r.At)
	if len(current) > 0 {
		out.Current = Candidate{current, sumOf(d.current, current, nil)}
	}
	cut := math.IsInf(out.Current.Weight.Value, 1)
	switch {
	case f.Pinned:
		out.Verdict = Pinned
		return false
	case d.settings.Policy == ECMP:
		out.Verdict = NoPolicy
		return false
	case r.At < f.Until && !(cut && d.settings.Policy == Sextant):
		out.Verdict = BackingOff
		return false
	}
	switch d.paths.Count(r.From, r.To) {
	case 0:
		out.Verdict = NoPath
		return false
	case 1:
		if !cut {
			out.Verdict = OnlyPath
			return false
		}
	}
	return d.choose(out, f, random)
}

// choose draws and compares paths as the policy has it.
func (d *Decider) choose(out *Decision, f *Flow, random *rand.PCG) bool {
	switch d.settings.Policy {
	case Smoothie:
		d.smoothie(out, f, random)
		return true
	case Sextant:
		d.sextant(out, f, random)
		return out.Verdict == Moved
	case Clove:
		if fraction(random) >= d.settings.Chance {
			out.Verdict = NoChance
			return false
		}
		d.oneAtRandom(out, random)
		return true
	case CloveINT:
		d.cloveINT(out, random)
	case LetFlow:
		d.oneAtRandom(out, random)
	}
	return false
}

// draw adds candidates: random shortest paths, which may be alike.
func (d *Decider) draw(out *Decision, random *rand.PCG, n int) {
	out.Candidates = d.drawn[:0]
	for range n {
		d.drawOne(out, random, func([]topology.Edge) bool { return true })
	}
}

// smoothie is lines 20 to 35 of Algorithm 1.
func (d *Decider) smoothie(out *Decision, f *Flow, random *rand.PCG) {
	d.draw(out, random, d.settings.Choices)
	best := lightest(out.Candidates)
	switch {
	case math.IsInf(best.Weight.Value, 1):
		out.Verdict = NoPath
	case len(out.Current.Path) > 0 &&
		out.Current.Weight.Value < best.Weight.Value+d.settings.Margin:
		out.Verdict = NotLighter
	case slices.Equal(best.Path, f.Path):
		out.Verdict = Exported
	default:
		out.Verdict, out.Path = Moved, slices.Clone(best.Path)
	}
}

// lightest is the candidate of least weight; the last one of those, as in lines 25 to 28.
func lightest(candidates []Candidate) Candidate {
	best := candidates[0]
	for _, c := range candidates[1:] {
		if !(best.Weight.Value < c.Weight.Value) {
			best = c
		}
	}
	return best
}

// redraws is how often sextant draws again in place of a path that it has.
const redraws = 2

// sextant compares what a candidate and the current path do not share: the rates that the flow gets
// there, if its own is known, and otherwise the queues.
func (d *Decider) sextant(out *Decision, f *Flow, random *rand.PCG) {
	d.drawOthers(out, random)
	if d.faster(out) {
		return
	}
	current := out.Current.Path
	var best Candidate
	most := math.Inf(-1) // gain beyond the margin
	for i, c := range out.Candidates {
		if math.IsInf(c.Weight.Value, 1) {
			continue
		}
		old, fresh := sumOf(d.current, current, c.Path), sumOf(d.links[i], c.Path, current)
		gain := (1-d.settings.Ratio)*old.Value - fresh.Value - d.settings.Margin -
			d.settings.Noise*math.Sqrt(old.Variance+fresh.Variance)
		// Gains are all infinite if the current path is down.
		if gain > most || gain == most && c.Weight.Value < best.Weight.Value {
			best, most = c, gain
		}
	}
	switch {
	case len(out.Candidates) > 0 && best.Path == nil:
		out.Verdict = NoPath
	case best.Path == nil || len(current) > 0 && most <= 0:
		out.Verdict = NotLighter
	case slices.Equal(best.Path, f.Path):
		out.Verdict = Exported
	default:
		out.Verdict, out.Path = Moved, slices.Clone(best.Path)
	}
}

// drawOthers draws candidates that differ from the current path and from each other, as far as a
// few attempts find them.
func (d *Decider) drawOthers(out *Decision, random *rand.PCG) {
	out.Candidates = d.drawn[:0]
	wanted := func(path []topology.Edge) bool {
		return !slices.Equal(path, out.Current.Path) && !known(out.Candidates, path)
	}
	for range d.settings.Choices * (1 + redraws) {
		d.drawOne(out, random, wanted)
		if len(out.Candidates) == d.settings.Choices {
			return
		}
	}
}

// drawOne adds a candidate, if there is a path and it is wanted.
func (d *Decider) drawOne(out *Decision, random *rand.PCG, wanted func([]topology.Edge) bool) {
	n := len(out.Candidates)
	path, ok := d.paths.Draw(d.drawn[n].Path[:0], out.From, out.To, random)
	d.drawn[n].Path = path
	if ok && wanted(path) {
		d.links[n] = d.weights.Links(d.links[n][:0], path, out.At)
		out.Candidates = append(out.Candidates, Candidate{path, sumOf(d.links[n], path, nil)})
	}
}

func known(candidates []Candidate, path []topology.Edge) bool {
	return slices.ContainsFunc(candidates, func(c Candidate) bool {
		return slices.Equal(c.Path, path)
	})
}

// oneAtRandom moves a flow to one random path, which may be its own.
func (d *Decider) oneAtRandom(out *Decision, random *rand.PCG) {
	d.draw(out, random, 1)
	d.take(out, out.Candidates[0])
}

// cloveINT moves a flow to the candidate whose fullest queue is the least full.
func (d *Decider) cloveINT(out *Decision, random *rand.PCG) {
	d.draw(out, random, d.settings.Choices)
	best := out.Candidates[0]
	if len(out.Current.Path) > 0 {
		best = out.Current
	}
	for _, c := range out.Candidates {
		if c.Weight.Peak < best.Weight.Peak {
			best = c
		}
	}
	d.take(out, best)
}

func (d *Decider) take(out *Decision, c Candidate) {
	switch {
	case math.IsInf(c.Weight.Value, 1):
		out.Verdict = NoPath
	case slices.Equal(c.Path, out.Current.Path):
		out.Verdict = NotLighter
	default:
		out.Verdict, out.Path = Moved, slices.Clone(c.Path)
	}
}
