package edge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sextant/agent/state"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// Of a service whose chains never changed the journal keeps the rule that they follow from, in one
// file for all: ten thousand services begin with a file of some megabytes, and not with as many
// files of 100 KB each. The file that a service has of its own is of a later change.

// rules are those of services, by endpoint.
type rules map[string]keptRule

type keptRule struct {
	pool.Rule
	at time.Time // when the chains were so
}

// The file, big endian: "SXRU", version 1 (4), and of each service the length of its endpoint (2),
// the endpoint, the time in nanoseconds since 1970 (8), and its rule.
const (
	rulesMagic = "SXRU\x01\x00\x00\x00"
	rulesName  = "rules" // no endpoint is called so
)

func (r rules) text() []byte {
	b := []byte(rulesMagic)
	for _, endpoint := range slices.Sorted(maps.Keys(r)) {
		b = binary.BigEndian.AppendUint16(b, uint16(len(endpoint)))
		b = append(b, endpoint...)
		b = binary.BigEndian.AppendUint64(b, uint64(r[endpoint].at.UnixNano()))
		b = r[endpoint].Append(b)
	}
	return b
}

// parseRules reads what text wrote.
func parseRules(b []byte) (rules, error) {
	if len(b) < len(rulesMagic) || string(b[:len(rulesMagic)]) != rulesMagic {
		return nil, errors.New("read rules of chains: they do not begin like some")
	}
	r := rules{}
	for b = b[len(rulesMagic):]; len(b) > 0; {
		length := 0
		if len(b) >= 2 {
			length = int(binary.BigEndian.Uint16(b))
		}
		if len(b) < 2+length+8 || length == 0 {
			return nil, fmt.Errorf("read rules of chains: %d bytes behind the last", len(b))
		}
		endpoint := string(b[2 : 2+length])
		at := time.Unix(0, int64(binary.BigEndian.Uint64(b[2+length:])))
		rule, rest, err := pool.ParseRule(b[2+length+8:])
		if err != nil {
			return nil, err
		}
		r[endpoint], b = keptRule{rule, at}, rest
	}
	return r, nil
}

// openRules reads the rules that are on the disk. What can't be read is as good as nothing.
func (j *journal) openRules() {
	j.rules = rules{}
	text, err := os.ReadFile(j.rulesPath())
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var known rules
	if err == nil {
		known, err = parseRules(text)
	}
	if err != nil {
		j.log.Warn("chains from before are lost: connections in buckets that moved may break",
			"file", j.rulesPath(), "error", err)
		return
	}
	j.rules = known
}

func (j *journal) rulesPath() string { return filepath.Join(j.dir, rulesName) }

// rule is that of a service; false: it has none, or a record of its own.
func (j *journal) rule(e config.Endpoint) (keptRule, bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	rule, kept := j.rules[e.String()]
	if kept {
		_, err := os.Stat(j.path(e))
		kept = errors.Is(err, os.ErrNotExist)
	}
	return rule, kept
}

// makes reports whether the chains of a service that starts again are those that it had.
func (j *journal) makes(s *Service, buckets int, secret flow.Secret) bool {
	rule, kept := j.rule(s.Endpoint)
	return kept && rule.Makes(poolSpec(s.Endpoint, s.Continuity, buckets, secret), s.Members)
}

// keepRules writes the rules of what has one, and returns whose records are to be written. Their
// older records are removed once the rules are on the disk. A rule stays there for as long as the
// service does, so that at no time it has neither.
func (j *journal) keepRules(pending map[config.Endpoint]*pool.Generation) (
	records []config.Endpoint, err error) {
	next, changed := maps.Clone(j.rules), false
	var ruled, gone []config.Endpoint
	for e, g := range pending {
		before, had := next[e.String()]
		if g == nil {
			gone, changed = append(gone, e), changed || had
			delete(next, e.String())
			continue
		}
		rule, has := g.Rule()
		if !has {
			records = append(records, e)
			continue
		}
		if ruled = append(ruled, e); !had || !before.Same(rule) {
			next[e.String()], changed = keptRule{rule, time.Now()}, true
		}
	}
	if changed {
		if err = os.MkdirAll(j.dir, 0o700); err == nil {
			err = state.WriteFile(j.rulesPath(), next.text())
		}
		if err != nil {
			return records, err
		}
		j.mutex.Lock()
		j.rules = next
		j.mutex.Unlock()
	}
	for _, e := range append(ruled, gone...) {
		if fault := os.Remove(j.path(e)); fault != nil && !errors.Is(fault, os.ErrNotExist) {
			err = fault
			continue
		}
		delete(pending, e)
	}
	return records, err
}
