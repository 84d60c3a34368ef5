package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// Bounds of the history: entries, octets of their files in all, and changes that each lists.
const (
	maxHistory      = 50
	maxHistoryBytes = 64 << 20
	maxListed       = 20
)

// History keeps the configurations that ran in a folder beside the node's state, a file each.
type History struct {
	dir   string
	texts *texts
	List  []PastConfig // the latest last
	// latest is the text of the last one; "": it was not read yet
	latest string
}

// PastConfig is what a file of the history has. Its text is read when it is wanted: in the list, it
// has the name of another one's file alone.
type PastConfig struct {
	api.Applied
	Text
	size int // of the file
}

// listed is what the list has.
func (p PastConfig) listed(size int) PastConfig {
	if p.Node, p.size = "", size; p.Of != nil {
		p.Of = &difference{File: p.Of.File}
	}
	return p
}

func (p PastConfig) file(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%06d.json", p.Number))
}

// openHistory reads what is there. Files that can't be read are left alone.
func openHistory(dir string, texts *texts) *History {
	h := &History{dir: dir, texts: texts}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		var p PastConfig
		if err != nil || json.Unmarshal(text, &p) != nil || p.file(dir) != name ||
			p.Of == nil && p.Node == "" || p.Of != nil && !exists(texts.path(p.Of.File)) {
			continue
		}
		h.List = append(h.List, p.listed(len(text)))
	}
	slices.SortFunc(h.List, func(a, b PastConfig) int { return cmp.Compare(a.Number, b.Number) })
	return h
}

// Remember writes down the configuration that was looked at last and runs now, unless it is the
// latest one anyway, and forgets the oldest ones.
func (s *Store) Remember(by, action string, changes []config.Change, now time.Time) error {
	h, node := s.History, s.Text
	if h.latest == "" {
		h.latest, _ = h.Text(0)
	}
	if h.latest == node {
		return nil
	}
	p := PastConfig{Applied: api.Applied{Number: 1, Time: now.UTC(), By: by,
		Action: action, ChangeCount: len(changes), Changes: []string{}}}
	for _, c := range changes[:min(len(changes), maxListed)] {
		p.Changes = append(p.Changes, c.String())
	}
	if n := len(h.List); n > 0 {
		p.Number = h.List[n-1].Number + 1
	}
	var text []byte
	err := s.await(func() (err error) {
		if p.Text, err = s.texts.shorten(node); err == nil {
			text, err = json.Marshal(p)
		}
		if err == nil {
			err = os.MkdirAll(h.dir, 0o700)
		}
		if err == nil {
			err = WriteFile(p.file(h.dir), text)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the history of configurations: %w", err)
	}
	h.List, h.latest = append(h.List, p.listed(len(text))), node
	h.prune()
	if s.Failure == nil { // else an earlier state may be on the disk
		s.texts.sweep(s.path, h.List)
	}
	return nil
}

// prune forgets the oldest configurations beyond the bounds, but never the latest two.
func (h *History) prune() {
	bytes := 0
	large := map[string]int{} // texts, and how many entries need them
	for _, p := range h.List {
		bytes += p.size
		if p.Of != nil {
			if large[p.Of.File]++; large[p.Of.File] == 1 {
				bytes += h.texts.size(p.Of.File)
			}
		}
	}
	for len(h.List) > 2 && (len(h.List) > maxHistory || bytes > maxHistoryBytes) {
		p := h.List[0]
		_ = os.Remove(p.file(h.dir)) // what stays is pruned again after the next start
		bytes -= p.size
		if p.Of != nil {
			if large[p.Of.File]--; large[p.Of.File] == 0 {
				bytes -= h.texts.size(p.Of.File)
			}
		}
		h.List = h.List[1:]
	}
}

// Text is the configuration of a number, in YAML; 0: the latest.
func (h *History) Text(number int) (string, error) {
	i := len(h.List) - 1
	if number != 0 {
		i = slices.IndexFunc(h.List, func(p PastConfig) bool { return p.Number == number })
	}
	if i < 0 {
		return "", &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"the history has no configuration %d; sextant config history lists them", number)}
	}
	name := h.List[i].file(h.dir)
	text, err := os.ReadFile(name)
	var p PastConfig
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err == nil {
		err = h.texts.restore(&p.Text)
	}
	if err != nil {
		return "", fmt.Errorf("read configuration %d of the history: %w", number, err)
	}
	return p.Node, nil
}

// Before is the number of the configuration that ran before the latest.
func (h *History) Before() (int, error) {
	if len(h.List) < 2 {
		return 0, &api.Error{Code: api.NotFound,
			Message: "there is no earlier configuration; sextant config history lists all"}
	}
	return h.List[len(h.List)-2].Number, nil
}

// Unconfirmed is a configuration that is undone unless it is confirmed.
type Unconfirmed struct {
	Until time.Time `json:"until"`
	// Within is for how long it may wait, whatever the clock says after a restart; 0: an earlier
	// version did not say
	Within time.Duration `json:"within,omitempty"`
	Text                 // that ran before; its Node is whole in memory
}

// longest is how long a configuration of an earlier version may wait.
const longest = 24 * time.Hour

// limit ends the wait in time, also if the clock was set back since it began.
func (u *Unconfirmed) limit(now time.Time) {
	if last := now.Add(cmp.Or(u.Within, longest)); u.Until.After(last) {
		u.Until = last
	}
}
