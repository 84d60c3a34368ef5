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
	dir  string
	List []PastConfig // the latest last
	// latest is the text of the last one; "": it was not read yet
	latest string
}

// PastConfig is what a file of the history has. Its Node is read when it is wanted.
type PastConfig struct {
	api.Applied
	Node string `json:"node,omitempty"` // YAML
	size int    // of the file
}

func (p PastConfig) file(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%06d.json", p.Number))
}

// openHistory reads what is there. Files that can't be read are left alone.
func openHistory(dir string) *History {
	h := &History{dir: dir}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		var p PastConfig
		if err != nil || json.Unmarshal(text, &p) != nil || p.Node == "" ||
			p.file(dir) != name {
			continue
		}
		p.Node, p.size = "", len(text)
		h.List = append(h.List, p)
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
	p := PastConfig{Node: node, Applied: api.Applied{Number: 1, Time: now.UTC(), By: by,
		Action: action, ChangeCount: len(changes), Changes: []string{}}}
	for _, c := range changes[:min(len(changes), maxListed)] {
		p.Changes = append(p.Changes, c.String())
	}
	if n := len(h.List); n > 0 {
		p.Number = h.List[n-1].Number + 1
	}
	var text []byte
	err := s.await(func() (err error) {
		if text, err = json.Marshal(p); err == nil {
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
	p.Node, p.size = "", len(text)
	h.List, h.latest = append(h.List, p), node
	h.prune()
	return nil
}

// prune forgets the oldest configurations beyond the bounds, but never the latest two.
func (h *History) prune() {
	bytes := 0
	for _, p := range h.List {
		bytes += p.size
	}
	for len(h.List) > 2 && (len(h.List) > maxHistory || bytes > maxHistoryBytes) {
		_ = os.Remove(h.List[0].file(h.dir)) // what stays is pruned again after the next start
		bytes -= h.List[0].size
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
	Node  string    `json:"node"` // that ran before, in YAML
}
