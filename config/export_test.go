package config

import (
	"bytes"
	"math"
)

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

// ReadPlain is readPlain.
var ReadPlain = readPlain

// ReadByLibrary reads the lines of a service by the library, and counts the values.
func ReadByLibrary(lines []byte) (s Service, values int, ok bool) {
	services := make([]Service, 1)
	values, ok = readTogether([][]byte{lines}, []int{0}, services,
		readBounds{math.MaxInt, math.MaxInt})
	return services[0], values - 1, ok // the list itself is no value of it
}

// IsItem reports whether lines can be one of a file that is read in parts.
func IsItem(text []byte) bool {
	least := -1
	for line := range bytes.Lines(text) {
		content := bytes.TrimLeft(bytes.TrimRight(line, "\n"), " ")
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		switch content = bytes.TrimRight(content, " "); {
		case len(content) == 0 || content[0] == '#':
		case !isUsual(content), least >= 0 && indent <= least:
			return false
		case least < 0:
			least = indent
		}
	}
	return least >= 0
}
