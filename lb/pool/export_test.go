package pool

// whole is a selection that does not say what it changes.
type whole struct{ selection }

func (w whole) update(before, backends []Backend) (selection, []int32, error) {
	s, _, err := w.selection.update(before, backends)
	return whole{s}, nil, err
}

// Whole returns a generation like g whose successors look at each bucket at each change.
func Whole(g *Generation) *Generation {
	copied := *g
	copied.selection = whole{g.selection}
	return &copied
}

// KeepOrders keeps the orders of tables of any size, until restore is called.
func KeepOrders() (restore func()) {
	was := mostScores
	mostScores = 0
	return func() { mostScores = was }
}
