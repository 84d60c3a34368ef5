package api

import (
	"errors"
	"net/http"

	"sextant/config"
)

// Code is the kind of an error, for programs.
type Code string

// The kinds of error.
const (
	NotFound Code = "notFound"
	Conflict Code = "conflict"
	Invalid  Code = "invalid"
	Internal Code = "internal"
	Stale    Code = "stale" // it is not the configuration that If-Match names
	// over the network: no token that is valid, and one that does not allow it
	Unauthorized Code = "unauthorized"
	Forbidden    Code = "forbidden"
	NoMethod     Code = "noMethod" // the path is served by other methods
)

// Error is the answer to a refused request.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // what is wrong; what would mend it
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// errorBody is how an Error is sent.
type errorBody struct {
	Error *Error `json:"error"`
}

func invalid(message string) *Error { return &Error{Invalid, message} }

// errorOf finds the code for what a Backend returned: that of an Error, or by
// the kinds of package config.
func errorOf(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, config.ErrNotFound):
		return &Error{NotFound, err.Error()}
	case errors.Is(err, config.ErrConflict):
		return &Error{Conflict, err.Error()}
	case errors.Is(err, config.ErrInvalid):
		return &Error{Invalid, err.Error()}
	default:
		return &Error{Internal, err.Error()}
	}
}

var httpStatus = map[Code]int{
	NotFound: http.StatusNotFound,
	Conflict: http.StatusConflict,
	Invalid:  http.StatusBadRequest,
	Internal: http.StatusInternalServerError,
	Stale:    http.StatusPreconditionFailed,

	Unauthorized: http.StatusUnauthorized,
	Forbidden:    http.StatusForbidden,
	NoMethod:     http.StatusMethodNotAllowed,
}

// ErrUnreachable is wrapped by a Client's errors when no agent answers.
var ErrUnreachable = errors.New("the agent is not reachable")
