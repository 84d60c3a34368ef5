package controller

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"sextant/agent/archive"
	"sextant/config"
)

// Standby is how several controllers agree, by etcd, on which of them leads. Its zero value: this
// one does.
type Standby struct {
	Name string `yaml:"name"` // another one for each
	Etcd Etcd   `yaml:"etcd"`
	// Lease is after what silence of the one that leads another one does.
	Lease time.Duration `yaml:"lease"`
}

// Etcd is how to reach it, as edge.etcd of a node file says.
type Etcd struct {
	Endpoints    []string `yaml:"endpoints"`
	Prefix       string   `yaml:"prefix"`
	Username     string   `yaml:"username"`
	PasswordFile string   `yaml:"passwordFile"`
	TLS          TLS      `yaml:"tls"`
}

const (
	defaultStandbyLease = 500 * time.Millisecond
	defaultEtcdPrefix   = "/sextant"
	holdsPerLease       = 5 // how often the one that leads says so
	leadKey             = "/controller/leads"
	releasePatience     = time.Second
)

func (s Standby) stands() bool { return len(s.Etcd.Endpoints) > 0 || s.Name != "" }

func (s Standby) check(south Southbound) error {
	switch {
	case !s.stands():
		return nil
	case s.Name == "" || len(s.Etcd.Endpoints) == 0:
		return fmt.Errorf("standby: give each controller a name, and all the same etcd.endpoints")
	case s.Lease < leastLease:
		return fmt.Errorf("standby.lease %v: write at least %v", s.Lease, leastLease)
	case south.Epoch != 0:
		return fmt.Errorf("southbound.epoch %d: with standby, epochs come from etcd; delete it",
			south.Epoch)
	}
	for _, e := range s.Etcd.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("standby.etcd.endpoints: %q: write one like "+
				"\"http://[fd00::3]:2379\"", e)
		}
	}
	return nil
}

func (e Etcd) node() *config.Etcd {
	return &config.Etcd{Endpoints: e.Endpoints, Prefix: e.Prefix, Username: e.Username,
		PasswordFile: e.PasswordFile, TLS: config.TLSFiles(e.TLS)}
}

// lead is the epoch by which this controller claims head-ends, for its sessions.
type lead struct {
	mutex   sync.Mutex
	epoch   uint64        // 0: another one leads
	changed chan struct{} // closed when it has
}

func newLead() *lead { return &lead{changed: make(chan struct{})} }

// now is the epoch, and what is closed when it is another one.
func (l *lead) now() (uint64, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.epoch, l.changed
}

func (l *lead) set(epoch uint64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.epoch = epoch
	close(l.changed)
	l.changed = make(chan struct{})
}

// tenure is what a controller knows of which one leads.
type tenure struct {
	lease    time.Duration
	holder   archive.Holder
	seen     time.Time // when the holder's last write was
	leads    bool
	epoch    uint64
	problem  string
	revision int64 // of the last write of this one, while it leads
}

// saw notes what holds the key, and tells whether it is to be taken: nothing holds it, or what does
// has been silent for the lease.
func (t *tenure) saw(h archive.Holder, now time.Time) bool {
	if h.Revision == 0 {
		t.holder = h
		return true
	}
	if h != t.holder {
		t.holder, t.seen = h, now
		return false
	}
	return now.Sub(t.seen) >= t.lease
}

// stand leads or stands by, until the context ends: the one that leads writes its name into etcd
// again and again, and another one that sees no write for the lease takes its place. Its epoch is
// etcd's revision, so that it is higher than all before. One that can't reach etcd leads on: if
// another one does, too, head-ends follow that one's epoch.
func (c *Controller) stand(ctx context.Context) {
	s := c.options.Config.Standby
	etcd := archive.New(s.Etcd.node())
	defer etcd.Close()
	t := tenure{lease: s.Lease}
	tick := time.NewTicker(s.Lease / holdsPerLease)
	defer tick.Stop()
	for {
		before := t
		c.step(ctx, etcd, &t)
		if ctx.Err() == nil && (before.epoch != t.epoch || before.problem != t.problem ||
			before.holder.Name != t.holder.Name) {
			_ = c.do(ctx, func() { c.reign(t) }) // fails when the controller ends
		}
		select {
		case <-ctx.Done():
			if t.leads {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
				defer cancel()
				_ = etcd.Release(ctx, leadKey, t.revision) // the lease ends it as well
			}
			return
		case <-tick.C:
		}
	}
}

// step asks etcd once, or says there that this one leads.
func (c *Controller) step(ctx context.Context, etcd *archive.Archive, t *tenure) {
	ctx, cancel := context.WithTimeout(ctx, t.lease)
	defer cancel()
	name := c.options.Config.Standby.Name
	since := t.revision
	var err error
	if !t.leads {
		var h archive.Holder
		if h, err = etcd.Holder(ctx, leadKey); err == nil && !t.saw(h, time.Now()) {
			t.problem = ""
			return
		}
		since = h.Revision
	}
	held := false
	if err == nil {
		t.revision, held, err = hold(ctx, etcd, name, since, t.revision)
	}
	t.problem = ""
	switch {
	case err != nil:
		t.problem = err.Error()
	case !held:
		t.leads, t.epoch = false, 0
	case !t.leads:
		t.leads, t.epoch = true, uint64(t.revision)
		fallthrough
	default:
		t.holder = archive.Holder{Name: name, Revision: t.revision}
	}
}

// hold is Archive.Hold; without success, the revision stays what it was.
func hold(ctx context.Context, etcd *archive.Archive, name string, since, old int64) (int64, bool,
	error) {
	revision, held, err := etcd.Hold(ctx, leadKey, name, since)
	if err != nil || !held {
		return old, false, err
	}
	return revision, true, nil
}

// reign notes which controller leads. One that does no more forgets which paths it gave.
func (c *Controller) reign(t tenure) {
	if c.epoch != t.epoch {
		c.options.Log.Info("controller", "leads", t.leads, "epoch", t.epoch, "leader",
			t.holder.Name)
		c.epoch = t.epoch
		c.lead.set(t.epoch)
		for router, h := range c.gifts.heads {
			h.followed, h.epoch = false, 0
			if !t.leads {
				c.yield(router)
			}
		}
	}
	if t.problem != "" && c.standby.Problem == "" {
		c.options.Log.Warn("etcd", "error", t.problem)
	}
	c.standby = StandbyStatus{Name: c.options.Config.Standby.Name, Leads: t.leads,
		Leader: t.holder.Name, Problem: t.problem}
}
