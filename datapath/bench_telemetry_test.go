package datapath

import (
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

// BenchmarkTelemetry prints what in-band telemetry costs at each program, for packets with and
// without it. What makes a packet longer or shorter also pays for the driver, which gives it its
// length again: so does the yardstick. Method and figures: docs/results/benchmarks.md.
func BenchmarkTelemetry(b *testing.B) {
	w := newTelemetryWorld(b, model.EncodingINT)
	oneCPU(b)
	spec, err := loadBenchTC()
	must(b, err)
	driver := openDriver(b, spec, w.far)
	rows := w.benchRows(b)
	rows[0].program = driver.Programs[benchTCProgBare]
	clock := rows[0]
	clock.name, clock.program = "the clock, read once", driver.Programs[benchTCProgClock]
	only, err := regexp.Compile(*benchOnly)
	must(b, err)
	asked := slices.DeleteFunc(rows[1:], func(r telemetryRow) bool {
		return !only.MatchString(r.name)
	})
	rows = append([]telemetryRow{rows[0], clock}, asked...)
	costs := make([][]cost, len(rows))
	for range *benchPasses {
		for i, r := range rows {
			w.setClasses(b, r.classes...)
			w.setWatch(b, r.watch)
			costs[i] = append(costs[i], driver.measure(b, r.benchRow))
		}
	}
	plain := make([]benchRow, len(rows))
	for i, r := range rows {
		plain[i] = r.benchRow
	}
	printRows(plain, costs)
}

// telemetryRow is a row under classes of the source and a watch of the sink.
type telemetryRow struct {
	benchRow
	classes []TelemetryClass
	watch   model.TelemetryWatch
}

const benchSeen = 1024 // flows

const benchMetadata = telemetry.NodeID | telemetry.Queue

// benchClass gives telemetry of three nodes to one packet in so many.
func benchClass(oneIn uint32, inTurn bool, match srpolicy.Match) TelemetryClass {
	return TelemetryClass{OneIn: oneIn, InTurn: inTurn, Instructions: benchMetadata, Hops: 3,
		Match: match}
}

// benchStack is telemetry that two nodes have written, and what else the header says.
func benchStack(t testing.TB, inner []byte, h telemetry.MD) []byte {
	t.Helper()
	h.Shim = telemetry.Shim{NPT: 2, Value: uint16(layers.IPProtocolIPv6)}
	h.HopWords, h.Instructions = uint8(benchMetadata.Words()), benchMetadata
	behind, err := h.AppendBinary(nil)
	must(t, err)
	udp := binary.BigEndian.AppendUint16([]byte{0xc0, 1}, telemetryPort)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(behind)+len(inner)))
	return slices.Concat(udp, []byte{0, 0}, behind, inner)
}

// benchRows are the rows: the first is the yardstick.
func (w *telemetryWorld) benchRows(t testing.TB) []telemetryRow {
	t.Helper()
	inner := benchPacket(t, benchACK(benchClientV6, hostVIPv6))
	written := make([]byte, 4*2*benchMetadata.Words())
	free := slices.Repeat([]byte{0xff}, 4*benchMetadata.Words())
	plain := benchCarried(t, layers.IPProtocolIPv6, inner, len(inner))
	pushed := benchCarried(t, layers.IPProtocolUDP, benchStack(t, inner,
		telemetry.MD{Remaining: 6, Stack: written}), len(inner))
	inPlace := benchCarried(t, layers.IPProtocolUDP, benchStack(t, inner, telemetry.MD{
		Remaining: 6, DomainID: telemetry.Domain, DSFlags: 1, Stack: append(free, written...)}),
		len(inner))
	trace := benchOption(t, inner, "2900 0100 311a 0000 5e00 1002 820000 00"+
		strings.Repeat("00", 16))
	midpoints := benchOption(t, inner, "2900 0100 3224"+strings.Repeat("00", 36)+"0104 00000000")
	elsewhere := plain
	elsewhere.octets = slices.Clone(plain.octets)
	elsewhere.octets[ethernetHeader+24+5]++
	stranger := benchArriving(t, benchACK(benchClientV6, hostVIPv6), benchSeen)

	port := srpolicy.Match{Protocol: unix.IPPROTO_TCP,
		DestinationPorts: srpolicy.Ports{First: hostPort, Last: hostPort}}
	rare := []TelemetryClass{benchClass(1<<31, false, srpolicy.Match{})}
	turns := []TelemetryClass{benchClass(1<<31, true, srpolicy.Match{})}
	listed := []TelemetryClass{benchClass(1<<31, false, port)}
	listedTurns := []TelemetryClass{benchClass(1<<31, true, port)}
	network := []TelemetryClass{benchClass(1<<31, true, srpolicy.Match{
		Destination: netip.PrefixFrom(hostVIPv6, 64).Masked()})}
	all := []TelemetryClass{benchClass(1, true, srpolicy.Match{})}
	quiet := model.TelemetryWatch{Limit: 1 << 31, GapNS: 1000e9, QueueBytes: 1 << 30,
		QueueChange: 1 << 30, Reasons: 1<<model.TelemetryReasonBits - 1, FlowIntervalNS: 1 << 60}
	row := func(name, program string, frame benchFrame, classes []TelemetryClass,
		watch model.TelemetryWatch) telemetryRow {
		return telemetryRow{benchRow{name: name, program: w.program.programs[program],
			frame: frame, verdict: tcUnspec}, classes, watch}
	}
	const source, transit, sink = "telemetry_source", "telemetry_transit", "telemetry_sink"
	off := model.TelemetryWatch{}
	return []telemetryRow{
		row("40 octets of room, made and taken back", source, plain, nil, off),
		row("source: plain IPv6", source, stranger, rare, off),
		row("source: nobody is chosen", source, plain, nil, off),
		row("source: not chosen, by chance", source, plain, rare, off),
		row("source: not chosen, in turn", source, plain, turns, off),
		row("source: not chosen, by chance, of a class", source, plain, listed, off),
		row("source: not chosen, in turn, of a class", source, plain, listedTurns, off),
		row("source: not chosen, in turn, by a prefix", source, plain, network, off),
		w.thatCount(t, row("source: header inserted", source, plain, all, off),
			model.TelemetryInserted),
		row("transit: plain IPv6", transit, stranger, nil, off),
		row("transit: encapsulated, no telemetry", transit, plain, nil, off),
		w.thatCount(t, row("transit: pushed", transit, pushed, nil, off), model.TelemetryPushed),
		w.thatCount(t, row("transit: in place", transit, inPlace, nil, off),
			model.TelemetryInPlace),
		w.thatCount(t, row("transit: IOAM", transit, trace, nil, off), model.TelemetryInPlace),
		w.thatCount(t, row("transit: Path Tracing, room for 12", transit, midpoints, nil, off),
			model.TelemetryInPlace),
		row("sink: plain IPv6", sink, stranger, nil, off),
		row("sink: to another SID", sink, elsewhere, nil, off),
		row("sink: no telemetry, nothing is watched", sink, plain, nil, off),
		row("sink: no telemetry, flow noted", sink, plain, nil, quiet),
		w.thatCount(t, row("sink: removed, nothing is watched", sink, pushed, nil, off),
			model.TelemetryRemoved),
		w.thatCount(t, row("sink: removed, flow noted", sink, pushed, nil, quiet),
			model.TelemetryRemoved),
		w.thatCount(t, row("sink: IOAM removed, flow noted", sink, trace, nil, quiet),
			model.TelemetryRemoved),
	}
}

// benchOption is a packet with a hop-by-hop header in front of the inner packet.
func benchOption(t testing.TB, inner []byte, header string) benchFrame {
	t.Helper()
	octets := octetsOf(t, header)
	octets[1] = byte(len(octets)/8 - 1)
	frame := benchCarried(t, layers.IPProtocolUDP, slices.Concat(octets, inner), len(inner))
	frame.octets[ethernetHeader+6] = byte(layers.IPProtocolIPv6HopByHop)
	return frame
}

// benchCarried is a packet to the sink's SID. Of what is behind its outer header the inner packet
// is the end, and has the flow.
func benchCarried(t testing.TB, next layers.IPProtocol, behind []byte, inner int) benchFrame {
	t.Helper()
	outer := packettest.Outer{HopLimit: 61, Src: netip.MustParseAddr("fd00:5e::e1"),
		Dst: netip.MustParseAddr("fcbb:bb00:5:d46::"), Extensions: behind, ExtensionNow: next}
	ip := sized(outer.Around(t, nil6)[:ipv6Header+len(behind)])
	at := ethernetHeader + len(ip) - inner
	return benchFrame{octets: benchLink.Frame(t, ip), source: at + 20, ports: at + ipv6Header,
		flows: benchSeen}
}

// thatCount has the packets of the row counted by an outcome.
func (w *telemetryWorld) thatCount(t testing.TB, r telemetryRow,
	as model.TelemetryOutcome) telemetryRow {
	r.benchRow.counted = func() uint64 {
		outcomes, err := w.program.Outcomes()
		must(t, err)
		return outcomes[as].Packets
	}
	return r
}
