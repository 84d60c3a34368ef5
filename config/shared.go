package config

import (
	"bytes"
	"reflect"
	"unsafe"
)

// A node that a change makes shares with the node before what the change left alone. What is in the
// same memory is the same; other memory says nothing.

// SharesAllButServices reports whether two nodes differ in the services of their edges alone.
func SharesAllButServices(a, b *Node) bool {
	if a == nil || b == nil || a.Edge == nil || b.Edge == nil {
		return false
	}
	x, y, edge, other := *a, *b, *a.Edge, *b.Edge
	x.Edge, y.Edge, edge.Services, other.Services = nil, nil, nil, nil
	return sharedBy(&x, &y) && sharedBy(&edge, &other)
}

// SharesService reports whether two services are the same.
func SharesService(a, b *Service) bool { return sharedBy(a, b) }

// sharedBy compares two values without a look at what they point to.
func sharedBy[T any](a, b *T) bool {
	return sameMemory(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

// sameMemory is sharedBy for items of lists.
func sameMemory(a, b reflect.Value) bool {
	if !a.CanAddr() || !b.CanAddr() {
		return false
	}
	octets := func(v reflect.Value) []byte {
		return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
	}
	return bytes.Equal(octets(a), octets(b))
}
