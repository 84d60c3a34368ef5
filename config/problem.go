package config

import (
	"errors"
	"fmt"
	"strings"

	"sextant/packet/lists"
)

// The kinds of problem, for errors.Is.
var (
	ErrInvalid  = errors.New("invalid value")
	ErrConflict = errors.New("conflict with what is there")
	ErrNotFound = errors.New("not found")
)

// Problem is one thing that is wrong with a value, and how to mend it.
type Problem struct {
	Kind error  // ErrInvalid, ErrConflict or ErrNotFound
	Path string // where, like "edge.services[0].backends[2].sid"; "" is the whole node
	Text string // what is wrong
	Mend string // what would make it right

	// about lists further paths on which the judgement rests: if one of them
	// could not be read, the judgement is void.
	about []string
}

// Error says what is wrong and what would mend it, without the place.
func (p *Problem) Error() string { return shortened(p.Text) + "; " + p.Mend }

// textWhole is how many characters of what is wrong are shown: it may repeat a name of any length.
const textWhole = 400

func shortened(text string) string {
	if len(text) <= textWhole {
		return text
	}
	runes := []rune(text)
	if len(runes) <= textWhole {
		return text
	}
	return string(runes[:textWhole/2]) + " ... " + string(runes[len(runes)-textWhole/2:])
}

// Unwrap returns the kind.
func (p *Problem) Unwrap() error { return p.Kind }

func invalid(text, mend string) *Problem {
	return &Problem{Kind: ErrInvalid, Text: text, Mend: mend}
}

// MaxErrors is how many faults of a file Parse reports one by one.
const MaxErrors = 20

// Error is a problem at its place in a file.
type Error struct {
	*Problem
	File         string
	Line, Column int    // from 1; the column counts characters
	Excerpt      string // the line and a caret below the column; "" if there is none
}

// Error writes "file:line:column: what is wrong; what would mend it", and the excerpt below.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem.Error())
	if e.Excerpt != "" {
		s += "\n" + e.Excerpt
	}
	return s
}

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Problem }

// Errors are the faults of a file in the order of their places: at most
// MaxErrors, then one that says how many there are besides.
type Errors []error

// Error writes one fault after the other.
func (e Errors) Error() string {
	texts := lists.Map(e, error.Error)
	return strings.Join(texts, "\n")
}

// Unwrap returns the faults.
func (e Errors) Unwrap() []error { return e }

const (
	excerptWhole  = 120 // characters of a line that is shown whole
	excerptBefore = 60  // shown of a longer one, left of the fault
	excerptAfter  = 40  // and right of it
)

// excerpt shows a line of the file with a caret under a column. Of a long line
// only the surroundings are shown.
func excerpt(line string, number, column int) string {
	text := []rune(strings.TrimRight(line, "\r"))
	at := min(max(column-1, 0), len(text))
	from, to := 0, len(text)
	if to > excerptWhole {
		from, to = max(0, at-excerptBefore), min(to, at+excerptAfter)
	}
	before := strings.Map(blank, string(text[from:at]))
	gutter := fmt.Sprintf("%5d | ", number)
	return fmt.Sprintf("%s%s\n%s| %s^", gutter, string(text[from:to]),
		strings.Repeat(" ", len(gutter)-2), before)
}

// blank keeps tabs, so that the caret stands right whatever their width.
func blank(r rune) rune {
	if r == '\t' {
		return r
	}
	return ' '
}
