package linkemu

import "time"

// frame is a frame's bytes. Two heap entries may share one, as copies.
type frame struct {
	data  []byte // of the length that arrived
	room  []byte // all that the frame can hold
	users int
}

// due is a frame that is under way.
type due struct {
	at    time.Duration
	order uint64 // of those with the same time, the first to come leaves first
	to    *direction
	frame *frame
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.order < o.order }

// dueHeap is a binary heap, the next frame first. container/heap would allocate for each entry.
type dueHeap []due

func (h *dueHeap) push(d due) {
	*h = append(*h, d)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

// pop takes the next frame off a heap that is not empty.
func (h *dueHeap) pop() due {
	s := *h
	top, end := s[0], len(s)-1
	s[0], s[end] = s[end], due{}
	s = s[:end]
	*h = s
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < end; child++ {
			if s[child].before(s[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
