package config

import (
	"strings"
)

// Effect is what a change of a running node does to connections.
type Effect uint8

const (
	// Keeps: none ends.
	Keeps Effect = iota
	// Moves: those end whose server the edge's chains do not name any more. How many that are
	// follows from the chains before and after.
	Moves
	// Ends: those end that need what is changed.
	Ends
)

// Consequence is a line of the table of what changes do to connections. Docs and messages come
// from it.
type Consequence struct {
	Object string // of the Change, with * for a name; "policy **" is all that begins with policy
	Field  string // of the Change; "": of a role or object that is added or removed; *: any
	Effect Effect
	Text   string // what happens
}

// Consequences are looked through from the first to the last.
var Consequences = []Consequence{
	{"edge", "buckets", Moves,
		"flows are in other buckets, for formerTime also in the former ones"},
	{"node", "secret", Moves,
		"flows are in other buckets with other backends, for formerTime also in the former ones"},
	{"node", "flowHash", Moves,
		"flows are in other buckets with other backends, for formerTime also in the former ones"},
	{"service *", "maxBackends", Moves, "flows are in other buckets, if their number differs"},
	{"service *", "table", Moves, "others are candidates; policy offer keeps previous owners"},
	{"service *", "policy", Moves, "ecmp reaches a bucket's owner, shadow also the one before"},
	{"service *", "candidates", Moves,
		"others are candidates; policy offer keeps previous owners"},
	{"service *", "depth", Moves, "shorter chains name fewer previous owners"},
	{"service *", "vip", Moves, "the old address is served no more"},
	{"service *", "protocol", Moves, "the old protocol is served no more"},
	{"service *", "port", Moves, "the old port is served no more"},
	{"service *: quic rotation *", "key", Keeps,
		"hosts know the flows that they serve, along the chain"},
	{"service *: quic rotation *", "*", Ends,
		"connection IDs of the former configuration name no server"},
	{"service *: quic rotation *", "", Ends, "connection IDs of the configuration name no server"},
	{"service *", "*", Keeps, "what comes later is treated in the new way"},
	{"service *: backend *", "weight", Moves, "buckets move; policy offer keeps previous owners"},
	{"service *: backend *", "sid", Moves, "packets go to the new SID alone"},
	{"service *: backend *", "state", Moves, "down gives connections up, no other state does"},
	{"service *: backend *", "", Moves, "it is reached no more: drain it first"},
	{"service *: learned *", "state", Moves, "as the state of a backend"},
	{"service *: **", "*", Keeps, "where a host's agent is asked"},
	{"service *", "", Moves, "a service that is removed is reached no more"},
	{"edge", "", Moves, "without its edge no service is reached by this node"},
	{"edge", "*", Keeps, "later packets have other outer headers"},
	{"edge interface *", "*", Keeps, "trusted sources; clients stay on their side"},
	{"edge interface *", "", Ends, "what comes by it is the kernel's"},
	{"edge**", "*", Keeps, "in the order of docs/howto/operate.md no packet is lost"},
	{"domain", "block", Ends, "no previous SID is valid"},
	{"domain: infrastructure *", "", Ends, "packets from a prefix that is removed are dropped"},
	{"domain**", "*", Keeps, "sizes and guards of later packets"},
	{"sid *", "behavior", Ends, "packets of other hosts' connections are not passed on as before"},
	{"sid *", "*", Keeps, "strays go to the new backup"},
	{"sid *", "", Ends, "packets to a SID that is removed are not taken"},
	{"host interface *", "*", Keeps, "the program is attached in the other mode"},
	{"host interface *", "", Ends, "what comes by it is not decapsulated"},
	{"host", "", Ends, "without the role no packet is decapsulated"},
	{"host**", "*", Keeps, "open connections are found by their sockets"},
	{"bgp neighbor *", "", Moves, "backends of which no other neighbor tells are gone"},
	{"**", "*", Keeps, "no bucket and no chain changes"},
}

// ConsequenceOf finds the line of a change.
func ConsequenceOf(c Change) Consequence {
	for _, line := range Consequences {
		if line.covers(c) {
			return line
		}
	}
	return Consequence{Object: c.Object, Effect: Ends, Text: "unknown"}
}

func (l Consequence) covers(c Change) bool {
	start, open := strings.CutSuffix(l.Object, "**")
	if l.Field != c.Field && (l.Field != "*" || c.Field == "" && !open) {
		return false
	}
	return matches(start, c.Object, open)
}

// matches compares an object with a pattern whose * stands for a name; a name has no space in it.
func matches(pattern, object string, open bool) bool {
	for {
		before, after, more := strings.Cut(pattern, "*")
		rest, ok := strings.CutPrefix(object, before)
		if !ok || !more {
			return ok && (open || rest == "")
		}
		end := strings.IndexAny(rest, " ")
		if end < 0 {
			end = len(rest)
		}
		if strings.HasPrefix(after, ":") {
			end = strings.Index(rest, after[:min(2, len(after))])
		}
		if end <= 0 {
			return false
		}
		pattern, object = after, rest[end:]
	}
}

// EndsConnections returns the changes from a to b that end connections whatever the chains are.
// What is added ends none.
func EndsConnections(a, b *Node) (list []Change) {
	for _, c := range Diff(a, b) {
		if c.Operation != Add && ConsequenceOf(c).Effect == Ends {
			list = append(list, c)
		}
	}
	return list
}

// MovesConnections returns the changes from a to b that may lead packets of connections elsewhere.
func MovesConnections(a, b *Node) (list []Change) {
	for _, c := range Diff(a, b) {
		if c.Operation != Add && ConsequenceOf(c).Effect == Moves {
			list = append(list, c)
		}
	}
	return list
}
