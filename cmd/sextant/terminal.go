package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// terminalWriter writes text that others may have chosen (names of topologies, of peers, of
// backends) to a terminal: what would drive the terminal is shown instead. The colours of this
// program pass.
type terminalWriter struct {
	to      io.Writer
	pending []byte // the beginning of a character whose end has not come
}

// Write is io.Writer. What is left of a character that is cut in two waits for the rest.
func (w *terminalWriter) Write(p []byte) (int, error) {
	text := append(w.pending, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	w.pending = slices.Clone(text[whole:])
	if _, err := io.WriteString(w.to, visible(string(text[:whole]), red, green, yellow,
		plain)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// raw is the writer behind one that guards a terminal, for what drives it on purpose and for
// commands that have it for themselves.
func raw(w io.Writer) io.Writer {
	w = behind(w)
	if guard, ok := w.(*terminalWriter); ok {
		return guard.to
	}
	return w
}

// visible shows what would drive a terminal, or turn round what stands before it, as Go writes it
// in a string: \x1b. Line ends, tabs and what else is named pass.
func visible(text string, allowed ...string) string {
	if harmless(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		if own := slices.IndexFunc(allowed,
			func(s string) bool { return strings.HasPrefix(text, s) }); own >= 0 {
			out.WriteString(allowed[own])
			text = text[len(allowed[own]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !drives(r):
			out.WriteString(text[:size])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&out, `\x%02x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out.String()
}

// harmless reports whether a text is of printable ASCII and line ends alone, as nearly all are.
func harmless(text string) bool {
	for i := range len(text) {
		if b := text[i]; (b < ' ' && b != '\n') || b > '~' {
			return false
		}
	}
	return true
}

// drives reports whether a character is no picture but an order: ECMA-48 controls, and marks of
// direction (Unicode UAX #9).
func drives(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' ||
		r == '\u2029'
}

// cell is a text in a table: it has one line and one column.
func cell(text string) string { return oneLine.Replace(visible(text)) }

var oneLine = strings.NewReplacer("\n", `\n`, "\t", `\t`)
