package ipfix_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/controller/ipfix"
	"sextant/controller/tsharktest"
	"sextant/packet/flow"
)

const documentation = 32473 // private enterprise number (RFC 5612)

var exported = time.Unix(1_700_000_000, 0)

func address(r *rand.Rand, octets int) netip.Addr {
	b := make([]byte, octets)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// routing is a segment routing header with random octets.
func routing(r *rand.Rand, segments int) []byte {
	b := []byte{17, byte(2 * segments), 4, byte(r.IntN(segments)), byte(segments - 1), 0x80,
		byte(r.Uint32()), byte(r.Uint32())}
	for range 16 * segments {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

func interval(r *rand.Rand) ipfix.Interval {
	end := exported.Add(-time.Duration(r.IntN(10000)) * time.Millisecond)
	return ipfix.Interval{Start: end.Add(-time.Duration(r.IntN(9000)) * time.Millisecond), End: end,
		Packets: uint64(r.IntN(1 << 40)), Drops: uint64(r.IntN(100))}
}

func flowOf(r *rand.Rand) ipfix.Flow {
	octets := []int{4, 16}[r.IntN(2)]
	f := ipfix.Flow{Interval: interval(r), Tuple: flow.Tuple{Src: address(r, octets),
		Dst: address(r, octets), SrcPort: uint16(r.Uint32()), DstPort: uint16(r.Uint32()),
		Protocol: []uint8{6, 17}[r.IntN(2)]}}
	if r.IntN(2) == 0 {
		f.Delay = &ipfix.Delay{MeanUS: r.Uint32(), MinUS: r.Uint32(), MaxUS: r.Uint32(),
			SumUS: r.Uint64()}
	}
	if r.IntN(2) == 0 {
		f.Routing = routing(r, 1+r.IntN(16))
	}
	return f
}

func linkOf(r *rand.Rand) ipfix.Link {
	extent := func() ipfix.Extent { return ipfix.Extent{Mean: r.Uint32(), Max: r.Uint32()} }
	return ipfix.Link{Interval: interval(r), Node: r.Uint64(), Egress: r.Uint32(),
		QueueBytes: extent(), LatencyNS: extent(), UtilizationPPM: extent()}
}

// Wireshark's words for a record. It shows no more than 24 octets of a field that it does not know.
func hexField(of string, id int, b []byte) string {
	text := ""
	for i, c := range b {
		if i == 24 {
			text += " …"
			break
		}
		text += " " + hex.EncodeToString([]byte{c})
	}
	return fmt.Sprintf("Enterprise Private entry: (%s) Type %d: Value (hex bytes):%s", of, id, text)
}

func intervalWords(i ipfix.Interval) []string {
	stamp := func(t time.Time) string {
		return t.UTC().Format(
			"Jan _2, 2006 15:04:05.000000000 UTC")
	}
	return []string{fmt.Sprintf("Packets: %d", i.Packets),
		fmt.Sprintf("Dropped Packets: %d", i.Drops),
		"StartTime: " + stamp(i.Start), "EndTime: " + stamp(i.End)}
}

func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

func flowWords(f ipfix.Flow) []string {
	protocol := map[uint8]string{6: "TCP (6)", 17: "UDP (17)"}[f.Tuple.Protocol]
	words := append([]string{"SrcAddr: " + f.Tuple.Src.String(), "DstAddr: " + f.Tuple.Dst.String(),
		fmt.Sprintf("SrcPort: %d", f.Tuple.SrcPort), fmt.Sprintf("DstPort: %d", f.Tuple.DstPort),
		"Protocol: " + protocol}, intervalWords(f.Interval)...)
	const iana = "(null)"
	if d := f.Delay; d != nil {
		words = append(words, hexField(iana, 530, be32(d.MeanUS)),
			hexField(iana, 531, be32(d.MinUS)),
			hexField(iana, 532, be32(d.MaxUS)),
			hexField(iana, 533, binary.BigEndian.AppendUint64(nil, d.SumUS)))
	}
	if b := f.Routing; b != nil {
		length := fmt.Sprintf("String_len_short: %d", len(b)-8)
		if len(b)-8 > 254 {
			length = fmt.Sprintf("String_len_short: 255|String_len_short: %d", len(b)-8)
		}
		words = append(words, hexField(iana, 492, b[5:6]), hexField(iana, 493, b[6:8]),
			hexField(iana, 498, b[3:4]), hexField(iana, 495, b[8+16*int(b[3]):][:16]),
			hexField(iana, 497, b[8:]), length)
	}
	return words
}

func linkWords(l ipfix.Link) []string {
	words := append([]string{fmt.Sprintf("Observation Point Id: %d", l.Node),
		fmt.Sprintf("OutputInt: %d", l.Egress)}, intervalWords(l.Interval)...)
	for i, v := range []uint32{l.QueueBytes.Mean, l.QueueBytes.Max, l.LatencyNS.Mean,
		l.LatencyNS.Max,
		l.UtilizationPPM.Mean, l.UtilizationPPM.Max} {
		words = append(words, hexField("Example Enterprise Number for Documentation Use", i+1,
			be32(v)))
	}
	return words
}

var flowHead = regexp.MustCompile(`(?m)^        Flow \d+$`)

// records are the records that Wireshark shows, as words joined by "|".
func records(text string) []string {
	var all []string
	parts := flowHead.Split(text, -1)
	for _, part := range parts[1:] {
		var words []string
		for line := range strings.Lines(part) {
			if !strings.HasPrefix(line, "            ") {
				if strings.TrimSpace(line) == "" {
					continue
				}
				break
			}
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "[Duration") {
				words = append(words, line)
			}
		}
		all = append(all, strings.Join(words, "|"))
	}
	return all
}

// exports are frames of three exports of random records, and what the records are in words.
func exports(t *testing.T, enterprise uint32, templates [3]bool) (frames [3][][]byte,
	words [3][]string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	now := 0
	e := ipfix.New(7, enterprise, func(b []byte) {
		if len(b) > ipfix.MaxMessage {
			t.Errorf("a message of %d octets", len(b))
		}
		frames[now] = append(frames[now], tsharktest.UDP(t, 4739, slices.Clone(b)))
	})
	for now = range 3 {
		e.Begin(exported, templates[now])
		for range 60 {
			if r.IntN(3) == 0 {
				l := linkOf(r)
				e.Link(l)
				words[now] = append(words[now], strings.Join(linkWords(l), "|"))
				continue
			}
			f := flowOf(r)
			e.Flow(f)
			words[now] = append(words[now], strings.Join(flowWords(f), "|"))
		}
		e.Flush()
	}
	return frames, words
}

// What is written is IPFIX to Wireshark, with the same values in each record, and with sequence
// numbers that it expects.
func TestWiresharkReadsTheSame(t *testing.T) {
	frames, words := exports(t, documentation, [3]bool{true, false, true})
	all := slices.Concat(frames[:]...)
	text := tsharktest.Read(t, all, "-V")
	if strings.Contains(text, "Malformed") || strings.Contains(text, "Expected Sequence Number") {
		t.Error("Wireshark finds a malformed message or a wrong sequence number")
	}
	got, want := records(text), slices.Concat(words[:]...)
	if len(got) != len(want) {
		t.Fatalf("%d records, not %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("record %d:\n%s\n%s", i, got[i], want[i])
		}
	}
	if strings.Count(text, "Observation Domain Id: 7") != len(all) ||
		strings.Count(text, "[Version: 10]")+strings.Count(text, "Version: 10") != len(all) {
		t.Error("version or observation domain are not those of each message")
	}
	// that Wireshark looks at the numbers shows when a message with records is lost
	text = tsharktest.Read(t, slices.Concat(frames[0], frames[1][1:], frames[2]), "-V")
	if !strings.Contains(text, "Expected Sequence Number") {
		t.Error("Wireshark does not miss a lost message")
	}
}

// A collector that starts late understands nothing until templates come again, and all from then.
func TestTemplatesAgain(t *testing.T) {
	frames, words := exports(t, documentation, [3]bool{true, false, true})
	got := records(tsharktest.Read(t, slices.Concat(frames[1], frames[2]), "-V"))
	understood := slices.DeleteFunc(got, func(r string) bool { return r == "" })
	if diff := len(understood) - len(words[2]); diff != 0 || !slices.Equal(understood, words[2]) {
		t.Fatalf("%d records understood, not %d", len(understood), len(words[2]))
	}
}

// Without an enterprise number, no template has an element of an enterprise.
func TestWithoutEnterprise(t *testing.T) {
	frames, words := exports(t, 0, [3]bool{true, false, false})
	text := tsharktest.Read(t, slices.Concat(frames[:]...), "-V")
	if strings.Contains(text, "Malformed") || strings.Contains(text, "Pen provided: Yes") {
		t.Error("an element of an enterprise, or a malformed message")
	}
	for i, r := range records(text) {
		want, _, _ := strings.Cut(slices.Concat(words[:]...)[i], "|Enterprise Private entry: (Ex")
		if r != want {
			t.Fatalf("record %d:\n%s\n%s", i, r, want)
		}
	}
}

// A segment routing header that no message has room for is left out, and the rest is there.
func TestLongRouting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := flowOf(r)
	f.Routing = routing(r, 30)
	var frames [][]byte
	e := ipfix.New(0, 0, func(b []byte) {
		frames = append(frames, tsharktest.UDP(t, 4739, slices.Clone(b)))
	})
	e.Begin(exported, true)
	e.Flow(f)
	e.Flush()
	f.Routing = nil
	got := records(tsharktest.Read(t, frames, "-V"))
	if len(got) != 1 || got[0] != strings.Join(flowWords(f), "|") {
		t.Fatal(got)
	}
}
