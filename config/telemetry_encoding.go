package config

import (
	"fmt"

	"sextant/packet/telemetry"
)

const (
	maxTraceNode   = 1<<24 - 2 // the number of a node in a trace
	maxTraceWords  = 61        // of an option: 244 octets
	maxMidpoints   = 84        // of an option: 252 octets
	notInIOAM      = telemetry.EgressTime | telemetry.Utilization
	encodingHint   = `write "encoding: ioam" or "encoding: path-tracing"`
	noSlotsHint    = "delete it: each node writes into room that is there"
	noMetadataHint = `delete it, or write "encoding: int"`
)

// telemetryEncoding checks what depends on the form in which the source inserts telemetry.
func (c *checker) telemetryEncoding(t *Telemetry) {
	s := t.Source
	if s.Encoding == EncodingINT {
		if len(t.Plain) > 0 {
			c.conflict("telemetry.plain", "INT lies between the outer headers and the packet in "+
				"them, and a plain packet has none", encodingHint, "telemetry.source.encoding")
		}
		return
	}
	if s.Slots > 0 {
		c.conflict("telemetry.source.slots", fmt.Sprintf("free slots are of INT, and the encoding "+
			"is %s", s.Encoding), noSlotsHint, "telemetry.source.encoding")
	}
	if s.Encoding == EncodingIOAM && t.Node > maxTraceNode {
		c.conflict("telemetry.node", fmt.Sprintf("%d is beyond the 24 bits that a trace has for a "+
			"node", t.Node), fmt.Sprintf("write 1 to %d", maxTraceNode),
			"telemetry.source.encoding")
	}
}

// telemetryRoom checks that what nodes write fits: the metadata of the source, or of an item of its
// watch list.
func (c *checker) telemetryRoom(where string, s *TelemetrySource, item []TelemetryMetadata) {
	asked := s.Instructions(item)
	words, at := asked.Words(), join(where, "metadata")
	switch s.Encoding {
	case EncodingIOAM:
		words = telemetry.TraceTypeOf(asked).Words()
		if asked&notInIOAM != 0 {
			c.conflict(at, "a trace of IOAM has neither egress-time nor utilization",
				noMetadataHint, "telemetry.source.encoding")
		}
		if words*s.Hops > maxTraceWords {
			c.invalid("telemetry.source.hops", fmt.Sprintf("%d nodes of %d words do not fit: a "+
				"trace has %d words", s.Hops, words, maxTraceWords),
				fmt.Sprintf("write %d, or less metadata", maxTraceWords/max(1, words)), at)
		}
	case EncodingPathTracing:
		if len(s.Metadata)+len(item) > 0 {
			c.conflict(at, "nodes write interface and time for Path Tracing, and nothing else",
				noMetadataHint, "telemetry.source.encoding")
		}
		if s.Hops > maxMidpoints {
			c.invalid("telemetry.source.hops", fmt.Sprintf("%d nodes do not fit: an option has "+
				"room for %d", s.Hops, maxMidpoints), fmt.Sprintf("write %d", maxMidpoints))
		}
	default:
		if words*(1+s.Slots) > maxTelemetryWords {
			c.invalid("telemetry.source.slots", fmt.Sprintf("%d free slots of %d words do not "+
				"fit: a source inserts %d words, its own included", s.Slots, words,
				maxTelemetryWords), fmt.Sprintf("write %d, or less metadata",
				max(0, maxTelemetryWords/words-1)), at)
		}
	}
}

// Octets of each form before what nodes write: UDP, shim and header of INT; the hop-by-hop header
// with the option's own, and in IOAM the trace's.
const (
	intOctets    = 8 + 4 + 12
	optionOctets = 2 + 2 + 2
	traceOctets  = 8 + 2
)

// Room is how many octets longer a packet of this source is at the sink, at most: all nodes wrote
// what the source, or the item of its watch list that asks for most, has them write.
func (s *TelemetrySource) Room() (octets int) {
	if s.OneIn > 0 {
		octets = s.roomOf(nil)
	}
	for _, w := range s.Watch {
		if w.OneIn > 0 {
			octets = max(octets, s.roomOf(w.Metadata))
		}
	}
	return octets
}

func (s *TelemetrySource) roomOf(item []TelemetryMetadata) int {
	const word, midpoint = 4, 3
	asked := s.Instructions(item)
	inEights := func(octets int) int { return (octets + 7) &^ 7 }
	switch s.Encoding {
	case EncodingIOAM:
		return inEights(optionOctets + traceOctets +
			word*telemetry.TraceTypeOf(asked).Words()*s.Hops)
	case EncodingPathTracing:
		return inEights(optionOctets + midpoint*s.Hops)
	default:
		return intOctets + word*asked.Words()*max(1+s.Slots, s.Hops)
	}
}
