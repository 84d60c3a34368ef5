package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Failures counts requests without a right answer, by kind.
type Failures struct {
	Refused   uint64 `json:"refused"`   // the connection was refused
	Reset     uint64 `json:"reset"`     // the connection was reset
	Timeout   uint64 `json:"timeout"`   // no complete answer in time
	Status    uint64 `json:"status"`    // a status other than 200
	ShortBody uint64 `json:"shortBody"` // the connection ended within the answer
	WrongBody uint64 `json:"wrongBody"` // the content is not the expected one
	Overflow  uint64 `json:"overflow"`  // not sent: too many requests in flight
	Other     uint64 `json:"other"`
}

// Total returns the number of failures of all kinds.
func (f Failures) Total() uint64 {
	total := uint64(0)
	for _, c := range f.counters() {
		total += *c.number
	}
	return total
}

// counter is one of the numbers of Failures, with its name in JSON.
type counter struct {
	kind   string
	number *uint64
}

func (f *Failures) counters() []counter {
	return []counter{
		{"refused", &f.Refused}, {"reset", &f.Reset}, {"timeout", &f.Timeout},
		{"status", &f.Status}, {"shortBody", &f.ShortBody},
		{"wrongBody", &f.WrongBody}, {"overflow", &f.Overflow}, {"other", &f.Other},
	}
}

// String names the kinds that there are, with their numbers: "reset 2, timeout 1", or "none".
func (f Failures) String() string {
	var parts []string
	for _, c := range f.counters() {
		if *c.number > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.kind, *c.number))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Plus returns the sums, kind by kind.
func (f Failures) Plus(o Failures) Failures {
	others := o.counters()
	for i, c := range f.counters() {
		*c.number += *others[i].number
	}
	return f
}

// Add counts a failure of a kind, as a Fetch names it.
func (f *Failures) Add(kind string) {
	for _, c := range f.counters() {
		if c.kind == kind {
			*c.number++
		}
	}
}

// count adds a failure and returns the name of its kind, as in JSON.
func (f *Failures) count(err error) (kind string) {
	counter, kind := f.kind(err)
	*counter++
	return kind
}

func (f *Failures) kind(err error) (*uint64, string) {
	var status statusError
	var wrong wrongBodyError
	switch {
	case errors.Is(err, errOverflow):
		return &f.Overflow, "overflow"
	case errors.As(err, &status):
		return &f.Status, "status"
	case errors.As(err, &wrong):
		return &f.WrongBody, "wrongBody"
	case errors.Is(err, syscall.ECONNREFUSED):
		return &f.Refused, "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &f.Reset, "reset"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT):
		return &f.Timeout, "timeout"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &f.ShortBody, "shortBody"
	default:
		return &f.Other, "other"
	}
}

var errOverflow = errors.New("too many requests in flight")

// statusError is an answer with a status other than 200.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}

// wrongBodyError is an answer whose content differs from the expected one.
type wrongBodyError struct {
	offset int64 // of the first difference, in bytes
	what   string
}

func (e wrongBodyError) Error() string {
	return fmt.Sprintf("body %s at byte %d", e.what, e.offset)
}
