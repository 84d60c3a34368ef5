package main

import (
	"fmt"
	"strings"
)

// orDash is the text, or a dash for an empty one.
func orDash(text string) string { return textIf(text != "", text) }

// textIf is the text where there is something to say, else a dash.
func textIf(there bool, text string) string {
	if !there {
		return "-"
	}
	return text
}

// known writes what is known, and a dash for what is not.
func known[T any](value *T, write func(T) string) string {
	if value == nil {
		return "-"
	}
	return write(*value)
}

// measured writes a number that may not be known.
func measured(value *float64, times float64, format string) string {
	return known(value, func(v float64) string { return fmt.Sprintf(format, v*times) })
}

// folded breaks a text into lines of at most so many columns; a longer word has its own.
func folded(text string, columns int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= columns:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
