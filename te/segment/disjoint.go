package segment

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Disjoint finds paths from one node to another that share nothing of the kind asked for, one after
// the other, each the best over what the ones before have left. Where the best leaves no second,
// two others are sought that are disjoint, unless the query is Greedy. Finding none is not an
// error; the answer says why.
func (e *Engine) Disjoint(q Query) (Answer, error) {
	q, err := e.normalise(q)
	if err != nil {
		return Answer{}, err
	}
	s := e.searches.Get().(*search)
	defer e.searches.Put(s)
	return s.run(q), nil
}

// Batch answers many queries with so many workers, at least one. Answers are in the order of the
// queries.
func (e *Engine) Batch(queries []Query, workers int) ([]Answer, error) {
	answers := make([]Answer, len(queries))
	var next atomic.Int64
	var group errgroup.Group
	for range max(1, workers) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(queries) {
					return nil
				}
				var err error
				if answers[i], err = e.Disjoint(queries[i]); err != nil {
					return err
				}
			}
		})
	}
	return answers, group.Wait()
}
