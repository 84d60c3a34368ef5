// Package lists is what makes lists of others.
package lists

import (
	"fmt"
	"strings"
)

// Map is what f makes of each item, in their order; it is never nil.
func Map[T, U any](list []T, f func(T) U) []U {
	made := make([]U, len(list))
	for i, item := range list {
		made[i] = f(item)
	}
	return made
}

// Join writes items one after the other.
func Join[T fmt.Stringer](list []T, between string) string {
	return strings.Join(Map(list, T.String), between)
}
