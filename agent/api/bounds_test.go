package api

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
)

// What the description says of integers holds: bounds are taken, and what is beyond them, also by
// so much that a time would not fit, is not.
func TestBoundsOfIntegers(t *testing.T) {
	read := map[string]func(text string) error{
		"confirmSeconds": func(text string) error {
			_, err := confirmOf(httptest.NewRequest("POST", "/?confirmSeconds="+text, nil))
			return err
		},
		"intervalMs": func(text string) error { _, err := intervalOf(text); return err },
		"number":     func(text string) error { _, err := numberOf(text); return err },
	}
	seen := 0
	for _, o := range endpoints(handler{}) {
		for _, p := range o.Query {
			s, take := p.Kind.schema(), read[p.Name]
			if s["type"] != "integer" || take == nil {
				continue
			}
			seen++
			least, most := s["minimum"].(int), s["maximum"].(int)
			for value, taken := range map[string]bool{fmt.Sprint(least): true,
				fmt.Sprint(most): true, fmt.Sprint(least - 1): false, fmt.Sprint(most + 1): false,
				"18446744074": false, "18446744073711": false, "x": false} {
				if err := take(url.QueryEscape(value)); (err == nil) != taken {
					t.Errorf("%s %s of %s: %v", p.Name, value, o.Path, err)
				}
			}
		}
	}
	if seen != len(read) {
		t.Errorf("%d parameters of %d were seen", seen, len(read))
	}
}
