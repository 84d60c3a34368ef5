package plan

import "strings"

// messageMost is how many bytes people are told at once: events take 1,024, conditions 32,768.
const messageMost = 1000

// Message is a text as events and conditions take it: what objects say is in it, and that may be
// long, or not UTF-8 where it is cut.
func Message(text string) string {
	if len(text) > messageMost {
		text = text[:messageMost] + "..."
	}
	return strings.ToValidUTF8(text, "")
}
