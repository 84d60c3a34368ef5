package health

import (
	"context"
	"errors"

	"sextant/config"
)

// line is a connection on which a check asks its question, and those after it, if it is kept.
type line interface {
	// ask asks, and returns what speaks against the backend; errStale if an earlier question was
	// asked on this connection, and there is no answer because it was of no use any more. keep: it
	// is to be kept; kept: it can be.
	ask(ctx context.Context, c *config.Check, keep bool) (kept bool, err error)
	Close() error
}

// Kept is what a check leaves to the next one of the same settings and target: its connection, if
// any.
type Kept struct{ line line }

// probe asks on the connection that is there, or a new one, and keeps it if keep says so. A
// connection that the server has closed, or on which it has said anything that nobody asked for, is
// replaced, which is no failure. One on which a check failed is not kept.
func (k *Kept) probe(ctx context.Context, c *config.Check, t Target, keep bool) error {
	if k.line != nil {
		if err := k.ask(ctx, c, keep); !errors.Is(err, errStale) {
			return err
		}
	}
	var err error
	if c.Kind == config.CheckGRPC {
		k.line, err = t.openCaller(ctx)
	} else {
		k.line, err = t.openPage(ctx, c, keep)
	}
	if err != nil {
		k.line = nil
		return err
	}
	return k.ask(ctx, c, keep)
}

func (k *Kept) ask(ctx context.Context, c *config.Check, keep bool) error {
	kept, err := k.line.ask(ctx, c, keep)
	if err != nil || !kept {
		k.Close()
	}
	return err
}

// files is how many of them what is kept takes.
func (k *Kept) files() int {
	if k.line == nil {
		return 0
	}
	return filesOfSocket
}

// Close closes what is kept.
func (k *Kept) Close() {
	if k.line != nil {
		_ = k.line.Close()
		k.line = nil
	}
}

// makeRoom closes what is kept until a check can open so many files, and reports whether it can.
// What was used last is closed first, for it is needed last.
func (m *Monitor) makeRoom(files int) bool {
	if files > 0 {
		m.closeKept(m.files + files - m.mostFiles)
	}
	return files == 0 || m.files == 0 || m.files+files <= m.mostFiles
}

// closeKept closes so many kept connections, or all.
func (m *Monitor) closeKept(many int) {
	for ; many > 0 && len(m.keepers) > 0; many-- {
		m.forget(m.keepers[len(m.keepers)-1])
	}
}

// forget closes what a job keeps while it waits.
func (m *Monitor) forget(r *running) {
	if r.underWay || r.files == 0 {
		return
	}
	m.unseat(r)
	r.kept.Close()
	m.files -= r.files
	r.files = 0
}

// unseat takes a job from the keepers.
func (m *Monitor) unseat(r *running) {
	last := len(m.keepers) - 1
	m.keepers[r.seat] = m.keepers[last]
	m.keepers[r.seat].seat = r.seat
	m.keepers[last] = nil
	m.keepers = m.keepers[:last]
}

// Leave ends the jobs with such marks that keep connections, and waits until these are closed. It
// comes before the paths of the marks go, by which servers learn of the end.
func (m *Monitor) Leave(marks map[uint32]Path) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var left []*running
	for key, r := range m.running {
		if _, goes := marks[r.Target.Mark]; goes && r.keeps {
			m.endJob(r)
			delete(m.running, key)
			left = append(left, r)
		}
	}
	for _, r := range left {
		for r.underWay {
			m.over.Wait()
		}
	}
}
