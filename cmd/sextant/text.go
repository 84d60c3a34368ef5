package main

import (
	"fmt"
	"strings"
)

// orDash is the text, or a dash for an empty one.
func orDash(text string) string { return textIf(text != "", text) }

// textIf is the text where there is something to say, else a dash.
func textIf(there bool, text string) string {
	if !there {
		return "-"
	}
	return text
}

// joined writes values one after the other.
func joined[T fmt.Stringer](list []T, by string) string {
	texts := make([]string, len(list))
	for i, value := range list {
		texts[i] = value.String()
	}
	return strings.Join(texts, by)
}
