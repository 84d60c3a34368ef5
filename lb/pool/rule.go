package pool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Rule is what the chains of a generation follow from that are as [New] made them: a thousandth of
// a record.
type Rule struct {
	mark     Mark
	spec     Spec
	backends []Backend // by ascending id
}

// Rule returns the generation's; false: its chains have a past, or had one.
func (g *Generation) Rule() (Rule, bool) {
	if !g.fresh || !g.isPlain() {
		return Rule{}, false
	}
	return Rule{markOf(g.spec, g.backends, nil) | freshMark, g.spec, g.backends}, true
}

// Same reports whether both rules make the same chains.
func (r Rule) Same(other Rule) bool { return r.mark == other.mark }

// Makes reports whether the rule's chains are those that New makes of spec and backends.
func (r Rule) Makes(spec Spec, backends []Backend) bool {
	spec, err := spec.normal()
	return err == nil && r.mark == markOf(spec, sorted(backends), nil)|freshMark
}

// Generation makes the generation again. It refuses the rule of a release that chose otherwise.
func (r Rule) Generation() (*Generation, error) {
	if !r.Makes(r.spec, r.backends) {
		return nil, errors.New("another release, which chose backends otherwise, made the chains")
	}
	return New(r.spec, r.backends, 0)
}

// Lengths of a rule as bytes, big endian: mark (8), buckets (4), seed (8), policy, method,
// candidates and depth (1 each), drain time in nanoseconds (8), backends (2), and of each id (2),
// key (8), weight (4), state (1) and site (2).
const (
	ruleHead    = 34
	ruleBackend = 17
)

// Append appends the rule as bytes.
func (r Rule) Append(b []byte) []byte {
	order := binary.BigEndian
	b = order.AppendUint64(b, uint64(r.mark))
	b = order.AppendUint32(b, uint32(r.spec.Buckets))
	b = order.AppendUint64(b, r.spec.Seed)
	b = append(b, byte(r.spec.Policy), byte(r.spec.Method), byte(r.spec.Candidates),
		byte(r.spec.Depth))
	b = order.AppendUint64(b, uint64(r.spec.Drain))
	b = order.AppendUint16(b, uint16(len(r.backends)))
	for _, s := range r.backends {
		b = order.AppendUint16(b, s.ID)
		b = order.AppendUint64(b, s.Key)
		b = order.AppendUint32(b, s.Weight)
		b = append(b, byte(s.State))
		b = order.AppendUint16(b, s.Site)
	}
	return b
}

// ParseRule reads a rule, and returns what follows it.
func ParseRule(b []byte) (r Rule, rest []byte, err error) {
	order := binary.BigEndian
	if len(b) < ruleHead {
		return r, nil, fmt.Errorf("read rule of chains: %d bytes are none", len(b))
	}
	r.mark = Mark(order.Uint64(b))
	r.spec = Spec{Buckets: int(order.Uint32(b[8:])), Seed: order.Uint64(b[12:]),
		Policy: Policy(b[20]), Method: Method(b[21]), Candidates: int(b[22]), Depth: int(b[23]),
		Drain: time.Duration(order.Uint64(b[24:]))}
	count := int(order.Uint16(b[32:]))
	if b = b[ruleHead:]; len(b) < count*ruleBackend {
		return r, nil, fmt.Errorf("read rule of chains: %d bytes can't hold %d backends", len(b),
			count)
	}
	r.backends = make([]Backend, count)
	for i := range r.backends {
		r.backends[i] = Backend{ID: order.Uint16(b), Key: order.Uint64(b[2:]),
			Weight: order.Uint32(b[10:]), State: State(b[14]), Site: order.Uint16(b[15:])}
		b = b[ruleBackend:]
	}
	if _, err := r.spec.normal(); err != nil {
		return r, nil, fmt.Errorf("read rule of chains: %w", err)
	}
	if err := validate(r.backends); err != nil {
		return r, nil, fmt.Errorf("read rule of chains: %w", err)
	}
	return r, b, nil
}
