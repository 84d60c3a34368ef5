package model_test

import (
	"bytes"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// TestEchoSums: for all values of a word, and so for all checksums, the reply's is what an
// independent library
// computes from nothing; also that of a message of zeros, where RFC 1624 gives the other zero.
func TestEchoSums(t *testing.T) {
	edge := newEdge(t, chain(1, 1), internal)
	for word := range uint32(1 << 16) {
		for name, pair := range packettest.EchoPairs(t, word) {
			got := edge.Process(external, fromClient().Frame(t, pair.Request))
			back := fromClient()
			back.Src, back.Dst = back.Dst, back.Src
			if string(got.Frame) != string(back.Frame(t, pair.Reply)) {
				t.Fatalf("%s, word %#04x:\ngot  %x\nwant %x", name, word, got.Frame[14:],
					pair.Reply)
			}
		}
	}
}

// TestIncrementalSums: so is that of each header which edge or host rewrites: a hop, an ECN mark,
// an MSS, a stray.
func TestIncrementalSums(t *testing.T) {
	edge, host := newEdge(t, chain(1, 1), internal), newShadowHost(internal, model.SocketNone)
	for key, service := range host.Services {
		own := *service
		own.MSS = 1400
		if key.Addr.Is6() {
			own.MSS = 1380
		}
		host.Services[key] = &own
	}
	for word := range uint32(1 << 16) {
		for name, c := range packettest.SumCases(t) {
			before, after := c.Rewritten(t, uint16(word))
			var got model.Result
			if frame := fromClient().Frame(t, before); c.Edge {
				got = edge.Process(external, frame)
			} else {
				got = host.Process(internal, 0, frame)
			}
			if !bytes.HasSuffix(got.Frame, after) {
				t.Fatalf("%s, word %#04x:\ngot  %x\nwant %x", name, word, got.Frame, after)
			}
		}
	}
}
