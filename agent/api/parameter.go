package api

import (
	"fmt"
	"net/http"
)

// FlagOf reads a parameter that switches something on or off; one that is not there is off. What
// is neither is refused, as something would be done that was not meant.
func FlagOf(r *http.Request, name string) (bool, error) {
	query := r.URL.Query()
	if !query.Has(name) {
		return false, nil
	}
	switch text := query.Get(name); text {
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	default:
		return false, invalid(fmt.Sprintf("%s is %.40q; write 1 or 0", name, text))
	}
}
