package segment

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sextant/te/topology"
)

// Sources answers the query from each source to all other nodes, with so many workers, and calls
// visit with the answers of one source, in the order of the destinations' numbers; the query's own
// ends do not count. Calls come in the order of sources, one at a time, whatever the workers do; an
// error that visit returns ends the work and is returned.
func (e *Engine) Sources(q Query, sources []topology.Node, workers int,
	visit func(from topology.Node, answers []Answer) error) error {
	if workers < 1 {
		return fmt.Errorf("%d workers can't answer queries; give 1 or more", workers)
	}
	order := inOrder{visit: visit, sources: sources, waiting: map[int][]Answer{}}
	var next atomic.Int64
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(sources) || order.failed.Load() {
					return nil
				}
				answers, err := e.fromSource(q, sources[i])
				if err != nil {
					order.failed.Store(true)
					return err
				}
				if err := order.deliver(i, answers); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// fromSource drops the source's row of latencies when it is done: no other source needs it.
func (e *Engine) fromSource(q Query, from topology.Node) ([]Answer, error) {
	s := e.searches.Get().(*search)
	defer e.searches.Put(s)
	answers := make([]Answer, 0, e.graph.Nodes()-1)
	for to := range topology.Node(e.graph.Nodes()) {
		if to == from {
			continue
		}
		q.From, q.To = from, to
		normal, err := e.normalise(q)
		if err != nil {
			return nil, err
		}
		answers = append(answers, s.run(normal))
	}
	e.latency.Forget(from)
	return answers, nil
}

// inOrder hands answers on in the order of the sources.
type inOrder struct {
	visit   func(topology.Node, []Answer) error
	sources []topology.Node
	failed  atomic.Bool

	mu      sync.Mutex
	next    int
	waiting map[int][]Answer
}

func (o *inOrder) deliver(i int, answers []Answer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[i] = answers
	for !o.failed.Load() {
		ready, ok := o.waiting[o.next]
		if !ok {
			return nil
		}
		delete(o.waiting, o.next)
		if err := o.visit(o.sources[o.next], ready); err != nil {
			o.failed.Store(true)
			return err
		}
		o.next++
	}
	return nil
}
