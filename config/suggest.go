package config

import (
	"fmt"
	"strings"
)

// suggest mends an unknown key: with the nearest known one, or with all.
func suggest(key string, settings []*setting) string {
	nearest, least := "", 3
	var known []string
	for _, f := range settings {
		if f.key == "" {
			continue
		}
		known = append(known, f.key)
		if d := distance(strings.ToLower(key), strings.ToLower(f.key), least); d < least &&
			d < len(f.key) {
			nearest, least = f.key, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return "known here: " + strings.Join(known, ", ")
}

// distance is the number of letters to insert, delete or replace that makes b
// of a (Levenshtein), or limit if the lengths alone tell that it is not less.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(diagonal+cost, row[j+1]+1, row[j]+1)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

const enumerated = 10

// enumerate lists names, the first few of many.
func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "),
		len(names)-enumerated)
}
