package controller

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// journal keeps the last decisions in memory, and all of them in a file if there is one. Its memory
// belongs to the event loop; another goroutine writes.
type journal struct {
	last   []Decision // a ring
	number uint64     // of the last decision
	lines  chan []byte
	done   chan struct{}
	lost   atomic.Uint64

	mutex   sync.Mutex
	failure error
}

const (
	journalMemory  = 10_000   // decisions
	journalWaiting = 4096     // lines on their way to the disk
	journalBytes   = 64 << 20 // of a file; then it becomes FILE.1, and a new one begins
	journalFlush   = time.Second
)

func openJournal(path string, log *slog.Logger) (*journal, error) {
	j := &journal{done: make(chan struct{})}
	if path == "" {
		close(j.done)
		return j, nil
	}
	f, err := appendTo(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w; name a file that can be written, or none", err)
	}
	j.lines = make(chan []byte, journalWaiting)
	go j.write(path, f, log)
	return j, nil
}

func appendTo(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

// add numbers a decision and keeps it. It does not wait for the disk.
func (j *journal) add(d *Decision) {
	j.number++
	d.Number = j.number
	if len(j.last) < journalMemory {
		j.last = append(j.last, *d)
	} else {
		j.last[(j.number-1)%journalMemory] = *d
	}
	if j.lines == nil {
		return
	}
	line, err := json.Marshal(d)
	if err != nil {
		j.fail(err)
		return
	}
	select {
	case j.lines <- append(line, '\n'):
	default:
		j.lost.Add(1)
	}
}

// recent returns up to n decisions that are wanted, the latest last.
func (j *journal) recent(n int, wanted func(*Decision) bool) []Decision {
	found := []Decision{}
	for i := range len(j.last) {
		d := &j.last[(int(j.number%journalMemory)+len(j.last)-1-i)%len(j.last)]
		if wanted(d) {
			found = append(found, *d)
			if len(found) == n {
				break
			}
		}
	}
	for a, b := 0, len(found)-1; a < b; a, b = a+1, b-1 {
		found[a], found[b] = found[b], found[a]
	}
	return found
}

// since returns the decisions after the one of a number, as far as they are in memory.
func (j *journal) since(after uint64) []Decision {
	n := 0
	if after < j.number {
		n = int(min(j.number-after, uint64(len(j.last))))
	}
	if n == 0 {
		return nil
	}
	return j.recent(n, func(*Decision) bool { return true })
}

// write is the goroutine of the file.
func (j *journal) write(path string, f *os.File, log *slog.Logger) {
	defer close(j.done)
	out, size := bufio.NewWriterSize(f, 1<<16), fileSize(f)
	flush := time.NewTicker(journalFlush)
	defer flush.Stop()
	for {
		var err error
		select {
		case line, open := <-j.lines:
			if !open {
				j.fail(out.Flush())
				f.Close()
				return
			}
			var n int
			n, err = out.Write(line)
			size += int64(n)
		case <-flush.C:
			err = out.Flush()
		}
		if err == nil && size > journalBytes {
			f, size, err = rotate(path, f, out)
		}
		if err != nil {
			j.lost.Add(1)
			if j.fail(err) {
				log.Warn("the journal's file is not written", "file", path, "error", err)
			}
			out.Reset(f)
		}
	}
}

func fileSize(f *os.File) int64 {
	if info, err := f.Stat(); err == nil {
		return info.Size()
	}
	return 0
}

func rotate(path string, f *os.File, out *bufio.Writer) (*os.File, int64, error) {
	if err := out.Flush(); err != nil {
		return f, 0, err
	}
	if err := os.Rename(path, path+".1"); err != nil {
		return f, 0, err
	}
	fresh, err := appendTo(path)
	if err != nil {
		return f, 0, err
	}
	f.Close()
	out.Reset(fresh)
	return fresh, 0, nil
}

// fail notes an error, and tells whether it is the first one.
func (j *journal) fail(err error) bool {
	if err == nil {
		return false
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	first := j.failure == nil
	j.failure = err
	return first
}

func (j *journal) warning() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	switch lost := j.lost.Load(); {
	case j.failure != nil:
		return fmt.Sprintf("the journal's file lacks %d decisions: %v", lost, j.failure)
	case lost > 0:
		return fmt.Sprintf("the journal's file lacks %d decisions: they came faster than the disk "+
			"takes them", lost)
	}
	return ""
}

// close writes what waits.
func (j *journal) close() {
	if j.lines != nil {
		close(j.lines)
	}
	<-j.done
}
