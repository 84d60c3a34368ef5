package agent

import (
	"fmt"
	"sync/atomic"
	"time"

	"sextant/agent/role"
	"sextant/linux"
	"sextant/linux/rtnetlink"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
)

// keptTables is how the router sees that something of its tables is gone. Other software deletes
// routes, rules and next hops that it does not know (systemd-networkd does when it starts), and the
// next hops go with the loopback interface when that goes down.
type keptTables struct {
	port    atomic.Uint32 // of the forwarder
	suspect bool          // something may be gone since the tables were looked at
	looked  time.Time
	problem string // why what is gone could not be written again
}

// keepTables sees to it that routes, shadow SIDs and rules of VRFs are written again that are gone.
func (r *routing) keepTables() {
	if r.router == nil {
		return
	}
	kept := &r.router.kept
	err := r.router.notePort()
	var news <-chan struct{}
	if err == nil {
		news, err = linux.News(r.Life, func(h rtnetlink.Header, body []byte) bool {
			return kernelfib.MayLose(h, body, kept.port.Load())
		}, kernelfib.LossGroups...)
	}
	if err != nil {
		r.Log.Warn("routes and rules of VRFs that others delete are written again when the agent "+
			"starts, not before", "error", err)
		return
	}
	role.Follow(r.Life, &r.Loop, news, func(struct{}) {
		kept.suspect = true
		if time.Since(kept.looked) >= role.LearnInterval { // else at the next tick
			r.restoreTables()
		}
	})
}

func (r *router) notePort() error {
	port, err := r.forwarder.Port()
	r.kept.port.Store(port)
	return err
}

// restoreTables writes again what is gone, if something may be. What fails is tried again at the
// next tick.
func (r *routing) restoreTables() {
	kernel := r.router
	if kernel == nil || !kernel.kept.suspect {
		return
	}
	kernel.kept.suspect, kernel.kept.looked = false, time.Now()
	written, err := kernel.rewrite()
	if err == nil {
		err = r.takeTables()
	}
	if written > 0 {
		r.Log.Warn("routes of VRFs were gone or changed by others; they are written again",
			"routes", written)
	}
	problem := ""
	if err != nil {
		kernel.kept.suspect = true
		problem = fmt.Sprintf("routes or rules of VRFs are gone, and can't be written again yet: "+
			"%v", err)
	}
	if problem == kernel.kept.problem {
		return
	}
	if kernel.kept.problem = problem; problem != "" {
		r.Log.Warn(problem, "after", role.LearnInterval)
	} else {
		r.Log.Info("the routes and rules of VRFs are there again")
	}
	r.Rewarn()
}

// rewrite compares the kernel's tables with what they are known to hold, and writes what differs:
// shadows first, as packets that go astray must find them. It begins as a new agent does, as next
// hops may be gone, too.
func (r *router) rewrite() (written int, err error) {
	forwarder, err := kernelfib.OpenForwarder()
	if err != nil {
		return 0, err
	}
	r.forwarder.Close()
	r.forwarder, r.changed = forwarder, true
	if err := r.notePort(); err != nil {
		return 0, err
	}
	for _, v := range r.vrfs {
		originals, shadows, err := r.held(v.VRF)
		if err != nil {
			return written, err
		}
		var shadowOps, ops []shadowvrf.Op
		for _, row := range v.table.Entries() {
			if row.Shadow != (rib.Set{}) && shadows[row.Prefix] != row.Shadow {
				shadowOps = append(shadowOps, shadowvrf.Op{Which: shadowvrf.Shadow,
					Prefix: row.Prefix, Set: row.Shadow})
			}
			if row.Original != (rib.Set{}) && originals[row.Prefix] != row.Original {
				ops = append(ops, shadowvrf.Op{Which: shadowvrf.Original, Prefix: row.Prefix,
					Set: row.Original})
			}
		}
		ops = append(shadowOps, ops...)
		failed, err := forwarder.Apply(uint32(v.Install), uint32(v.Shadow.Table), ops)
		if written += len(ops) - len(failed); err != nil {
			return written, err
		}
		for i, why := range failed {
			return written, fmt.Errorf("route %s to %s: %w", ops[i].Prefix, ops[i].Set, why)
		}
	}
	return written, nil
}
