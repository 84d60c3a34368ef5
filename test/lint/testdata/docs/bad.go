package docs

import "errors"

type Bare struct{ Field int }

func Function() {}

func (Bare) Method() {}

func (*Generic[T]) Method() {}

func (hidden) Method() {}

func unexported() {}

const Constant = 1

var (
	ErrBare = errors.New("bare")

	ErrSaid = errors.New("said") // is said at the end of the line
)

// The group's comment counts for all of it.
const (
	First = iota
	Second
)

type hidden struct{}

// Generic has a comment.
type Generic[T any] struct{ t T }

// Interface has a comment, one of its methods has none.
type Interface interface {
	// Said has one.
	Said()
	Bare()
}
