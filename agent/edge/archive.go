package edge

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/archive"
	"sextant/agent/metrics"
	"sextant/agent/signing"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// An edge whose node file names an etcd keeps the chains of its services there too: edges that
// start later, on new machines, find them even if no peer runs. Records are signed with the
// cluster's secret, so that who can write to etcd can't tell an edge where old connections are; the
// worst he can do is to bring back what once was.

const (
	// for what an edge waits for: reading at the start, the last writing at the end; and a sign of
	// life
	archiveTimeout  = 2 * time.Second
	archivePatience = 30 * time.Second // for what nobody waits for
	// between two writings: etcd keeps each of them until it is compacted
	archivePause    = time.Second
	archivePing     = 10 * time.Second // how long nothing is asked of an etcd that answers
	archiveRetryMax = 30 * time.Second
)

// archivist writes to etcd what has changed. One goroutine does, the owner only hands over. A nil
// archivist is a node without etcd.
type archivist struct {
	archive *archive.Archive
	node    string
	log     *slog.Logger
	waiting chan archiveTask // never more than one waits
	done    chan struct{}
	ctx     context.Context // of what is under way
	cancel  func()
	silent  bool // the owner's: etcd did not answer at the start, and is not asked again

	written map[config.Endpoint]*pool.Generation // run's: what etcd has of this node
	// what could not be read at the start, for the owner
	late chan late

	mutex       sync.Mutex
	failure     error // of the latest request, nil if it succeeded
	failures    uint64
	restored    uint64 // records that etcd had lost
	lastSuccess time.Time
	unread      []unread // what could not be read at the start
}

// unread are the chains of a service that an edge without memory would want from etcd.
type unread struct {
	secret   flow.Secret
	endpoint config.Endpoint
	buckets  int
}

// archiveTask is what is to be written, nil: removed.
type archiveTask struct {
	secret      flow.Secret
	generations map[config.Endpoint]*pool.Generation
	own         func(id uint16) bool // ids that no other node knows; nil: none
}

// openArchivist begins to write if the node file names an etcd. Whether it answers is found out
// later: an edge starts without it.
func openArchivist(n *config.Node, log *slog.Logger) *archivist {
	if n.Edge == nil || n.Edge.Etcd == nil {
		return nil
	}
	k := &archivist{
		archive: archive.New(n.Edge.Etcd), node: n.Name, log: log,
		waiting: make(chan archiveTask, 1), done: make(chan struct{}),
		written: map[config.Endpoint]*pool.Generation{}, late: make(chan late),
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
func (k *archivist) write(secret flow.Secret, generations map[config.Endpoint]*pool.Generation,
	own func(id uint16) bool) {
	if k == nil {
		return
	}
	select {
	case waiting := <-k.waiting:
		maps.Copy(waiting.generations, generations)
		generations = waiting.generations
	default:
	}
	k.waiting <- archiveTask{secret, generations, own}
}

// run writes at most once in a pause; after a failure it waits longer each time. While there is
// nothing to write it looks whether etcd is there.
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
				task.secret, task.own = more.secret, more.own
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

// work writes what is to be written, and takes it out of the task. First it looks whether etcd
// still has what was written, so that a dead etcd is soon known and an emptied one filled again;
// and it reads what could not be read at the start, before it writes in its place.
func (k *archivist) work(task archiveTask) error {
	var lost []string
	err := k.within(archiveTimeout, func(ctx context.Context) (err error) {
		if len(k.written) == 0 {
			return k.archive.Ping(ctx)
		}
		lost, err = k.archive.Lost(ctx)
		return err
	})
	if err == nil {
		err = k.readLate()
	}
	if err != nil {
		return err
	}
	k.restore(task, lost)
	for e, g := range task.generations {
		err := k.within(archivePatience, func(ctx context.Context) error {
			if g == nil {
				return k.archive.Delete(ctx, e.String(), k.node)
			}
			record := signing.Record{
				Endpoint: e.String(), Node: k.node, At: time.Now(),
				Chains: g.RecordWithout(task.own),
			}
			return k.archive.Put(ctx, e.String(), k.node, record.Seal(task.secret))
		})
		if err != nil {
			return err
		}
		delete(task.generations, e)
		if k.written[e] = g; g == nil {
			delete(k.written, e)
		}
	}
	return nil
}

// restore adds to the task what etcd no longer has as it was written.
func (k *archivist) restore(task archiveTask, lost []string) {
	if len(lost) == 0 {
		return
	}
	k.log.Warn("etcd lost chains, or another hand changed them; they are written again",
		"services", len(lost))
	k.mutex.Lock()
	k.restored += uint64(len(lost))
	k.mutex.Unlock()
	for e, g := range k.written {
		if _, newer := task.generations[e]; !newer && slices.Contains(lost, e.String()) {
			task.generations[e] = g
		}
	}
}

// readLate reads what could not be read at the start, and hands it over.
func (k *archivist) readLate() error {
	k.mutex.Lock()
	wanted := k.unread
	k.mutex.Unlock()
	for i, u := range wanted {
		past, err := k.records(archivePatience, u)
		if err != nil {
			return err
		}
		select {
		case k.late <- late{from: "etcd", secret: u.secret, endpoint: u.endpoint, past: past}:
		case <-k.ctx.Done():
			return k.ctx.Err()
		}
		k.mutex.Lock()
		k.unread = wanted[i+1:]
		k.mutex.Unlock()
	}
	return nil
}

// lateNews are the chains that could not be read at the start; never any without etcd.
func (k *archivist) lateNews() <-chan late {
	if k == nil {
		return nil
	}
	return k.late
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
	return fmt.Sprintf("chains are not kept in etcd, and an edge that starts can't find them "+
		"there: %v", k.failure)
}

// read returns the chains of a service as edges wrote them. What is not signed is left out, and so
// is what would not fit as many buckets. If etcd does not answer, they come later, through
// lateNews.
func (k *archivist) read(secret flow.Secret, e config.Endpoint, buckets int) (all []told) {
	if k == nil {
		return nil
	}
	wanted := unread{secret, e, buckets}
	if !k.silent {
		all, err := k.records(archiveTimeout, wanted)
		if k.note(err) {
			return all
		}
		k.silent = true // or each service would wait as long
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.unread = append(k.unread, wanted)
	return nil
}

func (k *archivist) records(timeout time.Duration, wanted unread) (all []told, err error) {
	var records []archive.Record
	err = k.within(timeout, func(ctx context.Context) (err error) {
		records, err = k.archive.Records(ctx, wanted.endpoint.String())
		return err
	})
	for _, r := range records {
		past, err := unseal(wanted.secret, wanted.endpoint, r, wanted.buckets)
		if err != nil {
			k.log.Warn("a record in etcd is not believed",
				"node", r.Node, "service", wanted.endpoint, "error", err)
			continue
		}
		all = append(all, past)
	}
	return all, err
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
	metrics.Gauge(out, metrics.EtcdSuccess, seconds)
	metrics.Counter(out, metrics.EtcdFailures, k.failures)
	metrics.Counter(out, metrics.EtcdRestored, k.restored)
}
