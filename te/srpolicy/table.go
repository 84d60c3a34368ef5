package srpolicy

import (
	"fmt"
	"math/bits"
)

// MaxTurns is how many packets a round of SplitPacket has at most.
const MaxTurns = 64

// MirrorMTU is how many bytes a packet may have that is mirrored: what an interface takes on which
// a program handles frames in one piece, and by which its copies are made
// (docs/reference/dataplane.md, "The loop").
const MirrorMTU = 3348

// Table is what the data plane looks up: the first entry that matches a packet decides.
type Table []Entry

// Entry is a rule with what its policy does now.
type Entry struct {
	Match  Match
	Policy string
	Index  uint32 // of the policy
	Path   string // the active candidate path
	Action Action
	Lists  []Header
	// Shares are for SplitFlow: a flow whose hash has upper 32 bits up to Shares[i], but not up to
	// the one before, takes list i.
	Shares []uint32
	// Turns are for SplitPacket: the lists that packets take, one after the other, again and again.
	Turns []uint8
	MTU   uint16
}

// Compile turns rules, the first of which has precedence, and the policies that they name into a
// table. Installed are the previous active paths, by policy. A rule whose policy has no valid path
// is left out, or drops.
func Compile(rules []Rule, policies []Policy, s Source,
	installed map[string]string) (Table, error) {
	compiled, err := compilePolicies(policies, s, installed)
	if err != nil {
		return nil, err
	}
	var table Table
	for i, rule := range rules {
		entry, known := compiled[rule.Policy]
		if !known {
			return nil, fmt.Errorf("rule %d: there is no policy %q", i+1, rule.Policy)
		}
		if err := rule.Match.check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if entry.Action == 0 {
			continue
		}
		entry.Match = rule.Match
		table = append(table, entry)
	}
	if len(table) > MaxRules {
		return nil, fmt.Errorf("%d rules; the data plane holds %d", len(table), MaxRules)
	}
	return table, nil
}

func compilePolicies(policies []Policy, s Source,
	installed map[string]string) (map[string]Entry, error) {
	compiled, names := map[string]Entry{}, map[uint32]string{}
	for _, p := range policies {
		if p.Index >= MaxPolicies {
			return nil, fmt.Errorf("policy %s: index %d; the data plane holds %d policies", p.Name,
				p.Index, MaxPolicies)
		}
		if other, taken := names[p.Index]; taken {
			return nil, fmt.Errorf("policy %s: policy %s has index %d too", p.Name, other, p.Index)
		}
		names[p.Index] = p.Name
		entry, err := p.compile(s, installed[p.Name])
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", p.Name, err)
		}
		compiled[p.Name] = entry
	}
	return compiled, nil
}

// compile returns an entry without a match; without an action if the policy leaves its traffic
// alone.
func (p Policy) compile(s Source, installed string) (Entry, error) {
	entry := Entry{Policy: p.Name, Index: p.Index, MTU: p.PacketMTU(installed)}
	path, ok := p.Active(installed)
	if !ok {
		if p.DropIfInvalid {
			entry.Action = Drop
		}
		return entry, nil
	}
	entry.Path, entry.Action = path.Name, path.Action
	if len(path.Lists) > MaxLists {
		return Entry{}, fmt.Errorf("path %s has %d segment lists; the data plane holds %d",
			path.Name, len(path.Lists), MaxLists)
	}
	if path.Action == Path {
		path.Lists = path.Lists[:1]
	}
	var weights []uint32
	for _, l := range path.Lists {
		h, err := l.Header(s)
		if err != nil {
			return Entry{}, fmt.Errorf("path %s: %w", path.Name, err)
		}
		entry.Lists = append(entry.Lists, h)
		weights = append(weights, max(1, l.Weight))
	}
	switch path.Action {
	case Path, Mirror:
	case SplitFlow:
		entry.Shares = Shares(weights)
	case SplitPacket:
		entry.Turns = turns(weights)
	default:
		return Entry{}, fmt.Errorf("path %s: %s is no action of a candidate path", path.Name,
			path.Action)
	}
	return entry, nil
}

// Shares divides the 2^32 values of a hash by weight: those up to the end of a share belong to it.
// The last one ends with the last value. One weight at least is above 0.
func Shares(weights []uint32) []uint32 {
	var total, sum uint64
	for _, w := range weights {
		total += uint64(w)
	}
	ends := make([]uint32, len(weights))
	for i, w := range weights {
		sum += uint64(w)
		// sum * 2^32 / total - 1; both factors can have 35 bits.
		high, low := bits.Mul64(sum, 1<<32)
		end, _ := bits.Div64(high, low, total)
		ends[i] = uint32(max(1, end) - 1) // a list of the least weight has a hash at least
	}
	return ends
}

// turns spreads lists over a round so that each comes up evenly: at each turn the list that lags
// most behind its weight (the smooth weighted round robin of nginx). Weights whose sum exceeds the
// round are scaled; each list keeps a turn.
func turns(weights []uint32) []uint8 {
	scaled := scale(weights)
	total := 0
	for _, w := range scaled {
		total += w
	}
	credit := make([]int, len(scaled))
	round := make([]uint8, 0, total)
	for range total {
		best := 0
		for i, w := range scaled {
			credit[i] += w
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= total
		round = append(round, uint8(best))
	}
	return round
}

// scale brings weights to small numbers of the same proportion whose sum is at most MaxTurns.
func scale(weights []uint32) []int {
	divisor, total := uint32(0), uint64(0)
	for _, w := range weights {
		divisor = gcd(divisor, w)
		total += uint64(w)
	}
	scaled := make([]int, len(weights))
	if total/uint64(divisor) <= MaxTurns {
		for i, w := range weights {
			scaled[i] = int(w / divisor)
		}
		return scaled
	}
	for i, w := range weights {
		// Rounded down, so that those that are lifted to 1 fit as well.
		scaled[i] = max(1, int(uint64(w)*(MaxTurns-MaxLists)/total))
	}
	return scaled
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Find returns the number of the first entry that matches the packet.
func (t Table) Find(p Packet) (int, bool) {
	for i := range t {
		if t[i].Match.Matches(p) {
			return i, true
		}
	}
	return 0, false
}
