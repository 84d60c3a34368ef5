package datapath

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"sextant/lb/pool"
)

// Tables of many services change together: all that come are written, all entries are led to them,
// and the edge waits once for the packets that still look at those before.

// batchPlaces is for how many chains tables are made beside those that packets are forwarded by,
// four of the least blocks, unless a single table is larger.
const batchPlaces = 4 * leastBlock

// tableChange is a table that is to hold a generation.
type tableChange struct {
	number uint32
	pair   *tablePair
	next   *pool.Generation
}

// SetChains is [Edge.ChangeChains] for one service.
func (e *Edge) SetChains(index uint32, g *pool.Generation) error {
	_, err := e.ChangeChains([]ServiceChains{{index, g}})
	return err
}

// ChangeChains replaces all chains of services, each of which is named once, and of each in one
// step: a packet sees the old ones or the new ones. A service that [Edge.SetService] has announced
// keeps its number of buckets. Of a list that is too long for the memory that batches may take
// (batchPlaces), a part is changed after the other. Changed is how many of the list have their new
// chains, the first ones; after an error all others have the old ones.
func (e *Edge) ChangeChains(all []ServiceChains) (changed int, err error) {
	if err := e.noteBuckets(all); err != nil {
		return 0, err
	}
	if e.found != nil {
		return len(all), e.compareChains(all)
	}
	for changed < len(all) {
		some := e.batchOf(all[changed:])
		if err := e.changeTables(some); err != nil {
			what := fmt.Sprintf("of service %d", some[0].number%formerTables)
			if len(some) > 1 {
				what = fmt.Sprintf("of %d services", len(some))
			}
			return changed, fmt.Errorf("set chains %s: %w", what, err)
		}
		changed += len(some)
	}
	return changed, nil
}

// noteBuckets notes those of former tables. Other services have the number that they were announced
// with.
func (e *Edge) noteBuckets(all []ServiceChains) error {
	for _, s := range all {
		if s.Index >= formerTables {
			e.former[s.Index-formerTables] = s.Generation.Buckets()
			continue
		}
		if buckets, known := e.buckets[s.Index]; known && buckets != s.Generation.Buckets() {
			return fmt.Errorf("set chains of service %d: a table of %d buckets for a service of %d",
				s.Index, s.Generation.Buckets(), buckets)
		}
	}
	return nil
}

// batchOf are the first of a list that are changed together.
func (e *Edge) batchOf(all []ServiceChains) (some []tableChange) {
	places := 0
	for _, s := range all {
		pair := e.chains[s.Index]
		if pair == nil {
			pair = &tablePair{}
		}
		if !pair.catchesUp(s.Generation) {
			places += s.Generation.Buckets() + 1
		}
		if places > batchPlaces && len(some) > 0 {
			break
		}
		e.chains[s.Index] = pair
		some = append(some, tableChange{s.Index, pair, s.Generation})
	}
	return some
}

// changeTables changes tables together: all of them, or after an error none.
func (e *Edge) changeTables(changes []tableChange) error {
	if err := e.writeSpares(changes); err != nil {
		return err
	}
	if err := e.leadToSpares(changes); err != nil {
		err = errors.Join(err, e.leadBack(changes))
		for _, c := range changes {
			c.pair.leave()
		}
		return err
	}
	for _, c := range changes {
		c.pair.turn(c.next)
	}
	e.catchUp(changes)
	return nil
}

// writeSpares makes the spare tables hold what is to come.
func (e *Edge) writeSpares(changes []tableChange) (err error) {
	var fresh []*tablePair
	defer func() {
		if err != nil {
			for _, p := range fresh {
				p.dropSpare()
			}
		}
	}()
	for _, c := range changes {
		if c.pair.catchesUp(c.next) {
			continue
		}
		c.pair.dropSpare()
		if c.pair.spare, err = e.blocks.takeTable(c.next.Buckets()); err != nil {
			return err
		}
		fresh = append(fresh, c.pair)
	}
	if err := e.blocks.make(); err != nil {
		return err
	}
	onAllProcessors(len(changes), func(i int) { changes[i].pair.spare.write(changes[i].next) })
	return nil
}

// leadToSpares makes all entries lead to the spare tables, and waits until no packet is under way
// to those that were live.
func (e *Edge) leadToSpares(changes []tableChange) error {
	waits := false
	for _, c := range changes {
		leads, err := e.lead(c.number, c.pair.spare.tablePlace)
		if err != nil {
			return err
		}
		waits = waits || leads
	}
	if !waits {
		return nil
	}
	return e.letPass()
}

// leadBack makes all entries lead to the tables that are live. The spare ones are not to be
// written, nor taken by others, until a later change has succeeded.
func (e *Edge) leadBack(changes []tableChange) error {
	var failed []error
	for _, c := range changes {
		var at tablePlace
		if c.pair.live != nil {
			at = c.pair.live.tablePlace
		}
		_, err := e.lead(c.number, at)
		failed = append(failed, err)
	}
	return errors.Join(append(failed, e.ForgetNextHops())...)
}

// letPass makes CPUs forget the services that they have cached, and waits until no packet is under
// way that began before.
func (e *Edge) letPass() error {
	if err := e.ForgetNextHops(); err != nil {
		return err
	}
	return e.await(awaitPackets)
}

// catchUp makes the spare tables of large services hold what the live ones do, ahead of the next
// change. Where there is no room for them, that change makes them, or fails.
func (e *Edge) catchUp(changes []tableChange) {
	onAllProcessors(len(changes), func(i int) {
		if c := changes[i]; c.pair.spare != nil {
			c.pair.spare.hold(c.next)
		}
	})
	pairs := make([]*tablePair, len(changes))
	for i, c := range changes {
		pairs[i] = c.pair
	}
	_ = e.makeSpares(pairs)
}

// onAllProcessors does n things.
func onAllProcessors(n int, do func(i int)) {
	var next atomic.Int64
	var doing sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		doing.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	doing.Wait()
}
