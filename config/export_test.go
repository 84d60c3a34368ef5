package config

import "math"

// ParseWhole reads a file in one piece.
func ParseWhole(name string, data []byte) (*Node, error) {
	return parseWhole(name, data, readBounds{maxBytes, math.MaxInt})
}

// InParts reports whether a text would be read in parts.
func InParts(data []byte) bool {
	_, ok := splitServices(data)
	return ok
}

// ValidateAfter is validateAfter.
var ValidateAfter = validateAfter

// MarshalWhole is what a node's text has to be, by the library.
var MarshalWhole = marshalWhole
