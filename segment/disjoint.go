package segment

// Disjoint finds paths from one node to another that share nothing of the kind asked for, one after the other, each the best
// over what the ones before have left. Finding none is not an error; the answer says why.
func (e *Engine) Disjoint(q Query) (Answer, error) {
	q, err := e.normalise(q)
	if err != nil {
		return Answer{}, err
	}
	s := e.searches.Get().(*search)
	defer e.searches.Put(s)
	return s.run(q), nil
}
