package consistenthash

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.owners) }
