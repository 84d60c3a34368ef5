package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/archive"
	"sextant/config"
	"sextant/flow"
	"sextant/pool"
	"sextant/signing"
)

// An edge whose node file names an etcd keeps the chains of its services there too: edges that start later, on new machines, find them
// even if no peer runs. Records are signed with the cluster's secret, so that who can write to etcd can't tell an edge
// where old connections are; the worst he can do is to bring back what once was.

const (
	archiveTimeout  = 2 * time.Second  // for what an edge waits for: reading at the start, the last writing at the end; and a sign of life
	archivePatience = 30 * time.Second // for what nobody waits for
	archivePause    = time.Second      // between two writings: etcd keeps each of them until it is compacted
	archivePing     = 10 * time.Second // how long nothing is asked of an etcd that answers
	archiveRetryMax = 30 * time.Second
)

// archivist writes to etcd what has changed. One goroutine does, the owner only hands over. A nil archivist is a node without etcd.
type archivist struct {
	archive *archive.Archive
	node    string
	log     *slog.Logger
	waiting chan archiveTask // never more than one waits
	done    chan struct{}
	ctx     context.Context // of what is under way
	cancel  func()
	silent  bool // the owner's: etcd did not answer at the start, and is not asked again

	mutex       sync.Mutex
	failure     error // of the latest request, nil if it succeeded
	failures    uint64
	lastSuccess time.Time
}

// archiveTask is what is to be written, nil: removed.
type archiveTask struct {
	at          time.Time // when the newest of them were so
	secret      flow.Secret
	generations map[config.Endpoint]*pool.Generation
}

// openArchivist begins to write if the node file names an etcd. Whether it answers is found out later: an edge starts without it.
func openArchivist(n *config.Node, log *slog.Logger) *archivist {
	if n.Edge == nil || n.Edge.Etcd == nil {
		return nil
	}
	k := &archivist{
		archive: archive.New(n.Edge.Etcd), node: n.Name, log: log,
		waiting: make(chan archiveTask, 1), done: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	go k.run()
	return k
}

// close gives what waits a moment to be written.
func (k *archivist) close() {
	if k == nil {
		return
	}
	defer time.AfterFunc(archiveTimeout, k.cancel).Stop()
	close(k.waiting)
	<-k.done
	k.cancel()
	k.archive.Close()
}

// write takes what journal.write takes. What waits already is replaced by what is newer.
func (k *archivist) write(secret flow.Secret, generations map[config.Endpoint]*pool.Generation) {
	if k == nil {
		return
	}
	select {
	case waiting := <-k.waiting:
		maps.Copy(waiting.generations, generations)
		generations = waiting.generations
	default:
	}
	k.waiting <- archiveTask{time.Now(), secret, generations}
}

// run writes at most once in a pause; after a failure it waits longer each time. While there is nothing to write it looks
// whether etcd is there.
func (k *archivist) run() {
	defer close(k.done)
	task := archiveTask{generations: map[config.Endpoint]*pool.Generation{}}
	retry, next := archivePause, time.Now()
	for open := true; open; {
		at := next
		if len(task.generations) == 0 && retry == archivePause {
			at = next.Add(archivePing - archivePause)
		}
		var more archiveTask
		select {
		case more, open = <-k.waiting:
			maps.Copy(task.generations, more.generations)
			if open {
				task.secret, task.at = more.secret, more.at
				continue
			}
			if len(task.generations) == 0 || k.warning() != "" {
				return // or it is no use to try once more
			}
		case <-time.After(time.Until(at)):
		}
		if k.note(k.work(task)) {
			retry = archivePause
		} else {
			retry = min(2*retry, archiveRetryMax)
		}
		next = time.Now().Add(retry)
	}
}

// work writes what is to be written, and takes it out of the task. First it asks for a sign of life, so that a dead etcd is soon known.
func (k *archivist) work(task archiveTask) error {
	if err := k.within(archiveTimeout, k.archive.Ping); err != nil {
		return err
	}
	for e, g := range task.generations {
		err := k.within(archivePatience, func(ctx context.Context) error {
			if g == nil {
				return k.archive.Delete(ctx, e.String(), k.node)
			}
			record := signing.Record{
				Endpoint: e.String(), Node: k.node, At: task.at, Chains: g.Record(),
			}
			return k.archive.Put(ctx, e.String(), k.node, record.Seal(task.secret))
		})
		if err != nil {
			return err
		}
		delete(task.generations, e)
	}
	return nil
}

func (k *archivist) within(timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(k.ctx, timeout)
	defer cancel()
	return f(ctx)
}

// note counts how a request ended, and says so when that changed.
func (k *archivist) note(err error) (ok bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	before := k.failure
	k.failure = err
	if err == nil {
		k.lastSuccess = time.Now()
		if before != nil {
			k.log.Info("etcd answers again")
		}
		return true
	}
	k.failures++
	if before == nil {
		k.log.Warn("chains are not in etcd; tried again until they are", "error", err)
	}
	return false
}

// warning is for the status: "" while etcd answers.
func (k *archivist) warning() string {
	if k == nil {
		return ""
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.failure == nil {
		return ""
	}
	return fmt.Sprintf("chains are not kept in etcd, and an edge that starts can't find them there: %v", k.failure)
}

// read returns the chains of a service as edges wrote them. What is not signed is left out, and so
// is what would not fit as many buckets.
func (k *archivist) read(secret flow.Secret, e config.Endpoint, buckets int) (all []told) {
	if k == nil || k.silent {
		return nil
	}
	var records []archive.Record
	err := k.within(archiveTimeout, func(ctx context.Context) (err error) {
		records, err = k.archive.Records(ctx, e.String())
		return err
	})
	if !k.note(err) {
		k.silent = true // or each service would wait as long
		return nil
	}
	for _, r := range records {
		past, err := unseal(secret, e, r, buckets)
		if err != nil {
			k.log.Warn("a record in etcd is not believed", "node", r.Node, "service", e, "error", err)
			continue
		}
		all = append(all, past)
	}
	return all
}

func unseal(secret flow.Secret, e config.Endpoint, r archive.Record, buckets int) (told, error) {
	most := pool.MaxRecordBytes(buckets)
	record, err := signing.Open(secret, e.String(), r.Node, r.Data, most)
	if err != nil {
		return told{}, err
	}
	chains, err := pool.ParseRecord(record.Chains)
	return told{chains, record.At}, err
}

// collect adds how writing goes.
func (k *archivist) collect(out chan<- prometheus.Metric) {
	if k == nil {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	seconds := 0.0
	if !k.lastSuccess.IsZero() {
		seconds = float64(k.lastSuccess.UnixMilli()) / 1000
	}
	gauge(out, etcdSuccess, seconds)
	counter(out, etcdFailures, k.failures)
}
