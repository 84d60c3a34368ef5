package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
)

// permissions are all permissions, each of which includes those before it.
var permissions = []Permission{Read, Operate, Admin}

// Includes reports whether p allows what needs another one.
func (p Permission) Includes(other Permission) bool {
	have := slices.Index(permissions, p)
	return have >= 0 && have >= slices.Index(permissions, other)
}

// Access is what the caller of one request may do, and what that needed.
type Access struct {
	may    Permission
	needed atomic.Int32 // the most that the request asked for: its place in permissions, from 1
}

// NewAccess is that of a caller with a permission.
func NewAccess(may Permission) *Access { return &Access{may: may} }

// Needed is the most that the request asked for; "": nothing.
func (a *Access) Needed() Permission {
	if n := a.needed.Load(); n > 0 {
		return permissions[n-1]
	}
	return ""
}

// ask notes what a request needs.
func (a *Access) ask(needs Permission) {
	n := int32(slices.Index(permissions, needs) + 1)
	for {
		before := a.needed.Load()
		if before >= n || a.needed.CompareAndSwap(before, n) {
			return
		}
	}
}

type accessKey struct{}

// WithAccess restricts a request to what its caller may do. A request without it came by the Unix
// socket: each process that may open that may do everything.
func WithAccess(ctx context.Context, a *Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// RoleHeader lowers what a request may do: its caller may have more.
const RoleHeader = "Sextant-Role"

// lowered restricts requests that name a role in RoleHeader to it. It gives nobody more.
func lowered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role := Permission(r.Header.Get(RoleHeader))
		if role == "" {
			next.ServeHTTP(w, r)
			return
		}
		if !slices.Contains(permissions, role) {
			writeError(w, invalid(fmt.Sprintf("%s %q: write read, operate or admin", RoleHeader,
				role)))
			return
		}
		switch a, restricted := r.Context().Value(accessKey{}).(*Access); {
		case !restricted:
			r = r.WithContext(WithAccess(r.Context(), NewAccess(role)))
		case a.may.Includes(role):
			a.may = role
		}
		next.ServeHTTP(w, r)
	})
}

// Require returns an error unless the caller of a request has a permission.
func Require(ctx context.Context, needs Permission) error {
	a, restricted := ctx.Value(accessKey{}).(*Access)
	if !restricted {
		return nil
	}
	a.ask(needs)
	if !a.may.Includes(needs) {
		return &Error{Forbidden, fmt.Sprintf("this needs the role %s, and the token has the role "+
			"%s; use a token with that role, or run the command on the node", needs, a.may)}
	}
	return nil
}

// Needs restricts an answer to callers with a permission.
func Needs(needs Permission, answer func(*http.Request) (any, error)) func(*http.Request) (
	any, error) {
	return func(r *http.Request) (any, error) {
		if err := Require(r.Context(), needs); err != nil {
			return nil, err
		}
		return answer(r)
	}
}

// NeedsFirst is Needs for what writes its answer itself.
func NeedsFirst(needs Permission, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := Require(r.Context(), needs); err != nil {
			writeError(w, err)
			return
		}
		h(w, r)
	}
}

// Caller is who asks, and what it may do.
type Caller struct {
	Name string     `json:"name"`
	Role Permission `json:"role"`
}

// AnswerCaller answers GET /v1/caller with a Caller.
func AnswerCaller(r *http.Request) (any, error) {
	c := Caller{Name: CallerOf(r.Context()), Role: Admin}
	if a, restricted := r.Context().Value(accessKey{}).(*Access); restricted {
		c.Role = a.may
	}
	return c, nil
}

// Refuse answers a request with an error, as the API does.
func Refuse(w http.ResponseWriter, err error) { writeError(w, err) }
