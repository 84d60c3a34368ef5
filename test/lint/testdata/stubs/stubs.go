// Package stubs has much to do.
package stubs

import "errors"

// TODO: do it.
var errStub = errors.New("Not implemented")

// XXXX is not a mark, and neither is todo in prose.
func stub(kind int) {
	switch kind {
	case 0: // FIXME
	default:
		panic("unreachable: kind")
	}
}
