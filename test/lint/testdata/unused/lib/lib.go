// Package lib is used in part.
package lib

import "fmt"

// Used is called by the command.
func Used() *Result { return &Result{embedded: embedded{}} }

// Result is reached through Used.
type Result struct{ embedded }

// String is what fmt.Stringer has to have.
func (r *Result) String() string { return fmt.Sprint(helper()) }

// Extra is called by nobody.
func (r *Result) Extra() { r.Extra() }

type embedded struct{}

// Error is what error has to have, and Result has it from here.
func (embedded) Error() string { return "" }

func helper() Colour { return Green + PointUsed }

// Colour is reached through helper.
type Colour int

// Red is used by the command, Green by helper, Blue by nobody, but it is counted.
const (
	Red Colour = iota
	Green
	Blue
)

// The code points that a registry gives.
const (
	PointUsed   = 7
	PointUnused = 9
)

// Lonely mentions itself, through its method.
type Lonely struct{ next *Lonely }

// Next is called by nobody.
func (l *Lonely) Next() *Lonely { return l.next }

// Tested is called by the tests of this package only.
func Tested() { testedToo() }

func testedToo() {}

// Oracle is called by the tests of another package.
func Oracle() {}

// Set is generic.
type Set[T comparable] struct{ m map[T]bool }

// Add is called through an instance.
func (s *Set[T]) Add(v T) { s.m[v] = true }

// Remove is called by nobody.
func (s *Set[T]) Remove(v T) { delete(s.m, v) }

func init() {
	s := Set[int]{m: map[int]bool{}}
	s.Add(1)
}

var _ fmt.Stringer = (*Asserted)(nil)

// Asserted is used in an assertion.
type Asserted struct{}

// String is what fmt.Stringer has to have.
func (*Asserted) String() string { return "" }

// Failure is returned by nobody.
type Failure struct{ cause error }

// Cause is an error that wraps another.
type Cause struct{ inner error }

func (c Cause) Error() string { return c.inner.Error() }

// Unwrap is what errors.Is looks for.
func (c Cause) Unwrap() error { return c.inner }

func init() { panic(Cause{}) }
