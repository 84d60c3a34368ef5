package pool

import "slices"

// WithFront returns the chain with one of its backends in front and all others behind it, in their
// order. It has the same backends, so each backend that the chain reaches is reached by this one.
// It is false, and the chain as it was, if the backend is not in it.
func (c Chain) WithFront(id uint16) (Chain, bool) {
	at := slices.Index(c.IDs[:c.Length], id)
	if at < 0 {
		return c, false
	}
	copy(c.IDs[1:at+1], c.IDs[:at])
	c.IDs[0] = id
	return c, true
}
