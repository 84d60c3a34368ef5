package datapath

import (
	"bytes"
	"testing"

	"sextant/datapath/packettest"
)

// TestEdgeEchoSums: for all values of a word, and so for all checksums, the reply's is what an
// independent library
// computes from nothing; also that of a message of zeros, where RFC 1624 gives the other zero.
func TestEdgeEchoSums(t *testing.T) {
	w := newWorld(t)
	edge := w.edgeSubject(tableEdge(t, w, Carrier), External)
	in := packettest.FromClient()
	for word := range uint32(1 << 16) {
		for name, pair := range packettest.EchoPairs(t, word) {
			_, after := edge.run(t, in.Frame(t, pair.Request))
			if string(after) != string(turned(in).Frame(t, pair.Reply)) {
				t.Fatalf("%s, word %#04x:\ngot  %x\nwant %x", name, word, after[14:], pair.Reply)
			}
		}
	}
}

// TestIncrementalSums: for all values of a word, and so for all checksums, that of each header
// which the programs
// rewrite is what an independent library computes from nothing (RFC 1624): a hop, an ECN mark, an
// MSS, a stray.
func TestIncrementalSums(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 9)
	_, host := tableHost(t, w)
	in, edge := packettest.FromClient(), w.edgeSubject(e, External)
	cases := packettest.SumCases(t)
	for word := range uint32(1 << 16) {
		for name, c := range cases {
			before, after := c.Rewritten(t, uint16(word))
			run := host
			if c.Edge {
				run = edge
			}
			if _, got := run.run(t, in.Frame(t, before)); !bytes.HasSuffix(got, after) {
				t.Fatalf("%s, word %#04x:\ngot  %x\nwant %x", name, word, got, after)
			}
		}
	}
}
