package edge

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sextant/agent/state"
	"sextant/config"
	"sextant/lb/pool"
)

// journal keeps the chains of each service on disk, or the rule that they follow from, for the day
// on which the machine loses its memory: after a mere restart of the agent they are still in the
// kernel. A record is written within the second, whole or not at all; so a power failure costs the
// last change at most. One goroutine writes, the owner only hands over. What the disk does not take
// is tried again.
type journal struct {
	dir string
	log *slog.Logger
	// what is to be written, nil: removed; never more than one waits
	waiting chan map[config.Endpoint]*pool.Generation
	done    chan struct{}

	mutex   sync.Mutex
	failure error // why the disk has not all; nil: it has
	rules   rules // of services without a record; run changes them
}

// OpenJournal begins to write.
func OpenJournal(state, node string, log *slog.Logger) *journal {
	j := &journal{
		dir: filepath.Join(state, node+".chains"), log: log,
		waiting: make(chan map[config.Endpoint]*pool.Generation, 1), done: make(chan struct{}),
	}
	j.openRules()
	go j.run()
	return j
}

func (j *journal) run() {
	defer close(j.done)
	pending := map[config.Endpoint]*pool.Generation{}
	for open := true; open; {
		var more map[config.Endpoint]*pool.Generation
		var retry <-chan time.Time
		if len(pending) > 0 {
			retry = time.After(state.StoreRetry)
		}
		select {
		case more, open = <-j.waiting:
			maps.Copy(pending, more)
		case <-retry:
		}
		j.note(j.keepAll(pending))
	}
}

// recordsAtOnce is how many records are written at the same time: a disk takes about as long for
// several as for one.
const recordsAtOnce = 8

// keepAll writes what it can, and takes it out of what is pending.
func (j *journal) keepAll(pending map[config.Endpoint]*pool.Generation) error {
	var next atomic.Int64
	var writing sync.WaitGroup
	endpoints, failure := j.keepRules(pending)
	failures := make([]error, len(endpoints))
	for range min(recordsAtOnce, len(endpoints)) {
		writing.Go(func() {
			var record []byte // one for all
			for i := int(next.Add(1)) - 1; i < len(endpoints); i = int(next.Add(1)) - 1 {
				record = pending[endpoints[i]].AppendRecord(record[:0])
				failures[i] = j.keep(endpoints[i], record)
			}
		})
	}
	writing.Wait()
	for i, endpoint := range endpoints {
		if failures[i] == nil {
			delete(pending, endpoint)
		} else {
			failure = failures[i]
		}
	}
	return failure
}

// note remembers how writing went, and says so when that changed.
func (j *journal) note(err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	switch {
	case err != nil && j.failure == nil:
		j.log.Warn("chains are not on disk: a power failure would lose who may have old "+
			"connections; "+
			"tried again until they are", "error", err)
	case err == nil && j.failure != nil:
		j.log.Info("chains are on disk again", "directory", j.dir)
	}
	j.failure = err
}

// warning is for the status: "" if all is on disk.
func (j *journal) warning() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.failure == nil {
		return ""
	}
	return fmt.Sprintf("chains are not kept on disk, a power failure would lose who may have old "+
		"connections: %v", j.failure)
}

// keep writes the record of a service's chains, if the disk has others.
func (j *journal) keep(e config.Endpoint, record []byte) error {
	if is, err := os.ReadFile(j.path(e)); err == nil && bytes.Equal(is, record) {
		return nil
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	return state.WriteFile(j.path(e), record)
}

// Close ends when all is written that the disk takes.
func (j *journal) Close() {
	close(j.waiting)
	<-j.done
}

// path is the file of a service. The escaped name holds no slash.
func (j *journal) path(e config.Endpoint) string {
	return filepath.Join(j.dir, url.PathEscape(e.String()))
}

// write takes the chains of services, nil for those that are gone. What waits for the disk already
// is replaced by what is newer.
func (j *journal) write(generations map[config.Endpoint]*pool.Generation) {
	select {
	case waiting := <-j.waiting:
		maps.Copy(waiting, generations)
		generations = waiting
	default:
	}
	j.waiting <- generations
}

// read returns the chains of a service as they were, and when they were written; the zero value if
// there are none. What can't be read is as good as nothing.
func (j *journal) read(e config.Endpoint) told {
	chains, at, err := j.readFile(j.path(e))
	if errors.Is(err, os.ErrNotExist) {
		return j.ruled(e)
	}
	if err != nil {
		j.log.Warn("chains from before are lost: connections in buckets that moved may break",
			"file", j.path(e), "error", err)
		return told{}
	}
	return told{chains, at}
}

// ruled returns the chains that a service's rule makes, as read does.
func (j *journal) ruled(e config.Endpoint) told {
	rule, kept := j.rule(e)
	if !kept {
		return told{}
	}
	g, err := rule.Generation()
	if err != nil {
		j.log.Warn("chains from before are lost: connections in buckets that moved may break",
			"service", e, "error", err)
		return told{}
	}
	return told{g.AllChains(), rule.at}
}

func (j *journal) readFile(path string) ([]pool.Chain, time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	record, err := os.ReadFile(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	chains, err := pool.ParseRecord(record)
	return chains, info.ModTime(), err
}

// noteChains hands to the journal and to the archivist what has changed since.
func (x *exchange) noteChains() {
	services := x.services()
	changed := map[config.Endpoint]*pool.Generation{}
	for i := range services {
		if s := &services[i]; x.noted[s.Endpoint] != s.Generation {
			changed[s.Endpoint] = s.Generation
		}
	}
	maps.Copy(x.noted, changed)
	if len(x.noted) > len(services) {
		x.forgetGone(services, changed)
	}
	if len(changed) > 0 {
		x.etcd.write(signingSecret(x.Node), maps.Clone(changed), x.Store.Kept.SIDs.Own())
		x.Journal.write(changed)
	}
}

// forgetGone adds services that are no more to what has changed.
func (x *exchange) forgetGone(services []Service,
	changed map[config.Endpoint]*pool.Generation) {
	run := map[config.Endpoint]bool{}
	for i := range services {
		run[services[i].Endpoint] = true
	}
	for endpoint := range x.noted {
		if !run[endpoint] {
			changed[endpoint] = nil
			delete(x.noted, endpoint)
		}
	}
}
