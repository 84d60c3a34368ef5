// Package wire parses.
package wire

import "io"

// ParseFrame has a fuzz target.
func ParseFrame(b []byte) int { return parseHeader(b) + Length(b) }

// parseHeader is reached by ParseFrame.
func parseHeader(b []byte) int { return len(b) }

// Length is no parser by its name.
func Length(b []byte) int { return len(b) }

// ParseTrailer has none.
func ParseTrailer(b []byte) int { return len(b) }

// Reader reads.
type Reader struct{}

// ReadAll of a stream has none either.
func (Reader) ReadAll(r io.Reader) error { return nil }

// ParseName takes text that a configuration has parsed already.
func ParseName(text string) string { return text }
