// Package syntax defines the errors of parsers of configuration text: what is wrong, and the hint.
package syntax

import "fmt"

// Error is a text that cannot be read. Who shows it with a place keeps the two parts apart.
type Error struct {
	Text string // what is wrong, without the place
	Hint string // what would make it right
}

// Error writes both parts on one line.
func (e *Error) Error() string { return e.Text + "; " + e.Hint }

// Wrong makes an error of a hint, and a format with its values that say what is wrong.
func Wrong(hint, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), hint}
}
