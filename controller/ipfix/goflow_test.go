package ipfix_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netsampler/goflow2/v2/decoders/netflow"

	"sextant/controller/ipfix"
)

// value is an element of a record as octets: its enterprise, 0 for IANA's, and number.
type value struct {
	enterprise uint32
	id         uint16
	octets     string
}

// number is a value of so many octets.
func number(id uint16, octets int, n uint64) value {
	b := binary.BigEndian.AppendUint64(nil, n)
	return value{id: id, octets: string(b[8-octets:])}
}

func intervalValues(i ipfix.Interval) []value {
	stamp := func(t time.Time) uint64 { return uint64(t.UnixMilli()) }
	return []value{number(2, 8, i.Packets), number(133, 8, i.Drops),
		number(152, 8, stamp(i.Start)), number(153, 8, stamp(i.End))}
}

// flowValues are the elements of a flow by the numbers of IANA's registry.
func flowValues(f ipfix.Flow) []value {
	source, destination := uint16(27), uint16(28) // sourceIPv6Address, destinationIPv6Address
	if f.Tuple.Src.Is4() {
		source, destination = 8, 12
	}
	all := append([]value{{id: source, octets: string(f.Tuple.Src.AsSlice())},
		{id: destination, octets: string(f.Tuple.Dst.AsSlice())},
		number(7, 2, uint64(f.Tuple.SrcPort)), number(11, 2, uint64(f.Tuple.DstPort)),
		number(4, 1, uint64(f.Tuple.Protocol))}, intervalValues(f.Interval)...)
	if d := f.Delay; d != nil { // RFC 9951
		all = append(all, number(530, 4, uint64(d.MeanUS)), number(531, 4, uint64(d.MinUS)),
			number(532, 4, uint64(d.MaxUS)), number(533, 8, d.SumUS))
	}
	if b := f.Routing; b != nil { // RFC 9487
		all = append(all, value{id: 492, octets: string(b[5:6])},
			value{id: 493, octets: string(b[6:8])}, value{id: 498, octets: string(b[3:4])},
			value{id: 495, octets: string(b[8+16*int(b[3]):][:16])},
			value{id: 497, octets: string(b[8:])})
	}
	return all
}

func linkValues(l ipfix.Link) []value {
	all := append([]value{number(138, 8, l.Node), number(14, 4, uint64(l.Egress))},
		intervalValues(l.Interval)...)
	for i, v := range []uint32{l.QueueBytes.Mean, l.QueueBytes.Max, l.LatencyNS.Mean,
		l.LatencyNS.Max, l.UtilizationPPM.Mean, l.UtilizationPPM.Max} {
		one := number(uint16(i+1), 4, uint64(v))
		one.enterprise = documentation
		all = append(all, one)
	}
	return all
}

// decoded are the records that goflow2 finds in a message.
func decoded(t *testing.T, message []byte,
	templates netflow.NetFlowTemplateSystem) (all [][]value) {
	t.Helper()
	var packet netflow.IPFIXPacket
	if err := netflow.DecodeMessageVersion(bytes.NewBuffer(message), templates, nil,
		&packet); err != nil {
		t.Fatalf("goflow2 on a message of %d octets: %v", len(message), err)
	}
	if packet.ObservationDomainId != 7 || packet.ExportTime != uint32(exported.Unix()) {
		t.Errorf("goflow2 reads domain %d, time %d", packet.ObservationDomainId, packet.ExportTime)
	}
	for _, set := range packet.FlowSets {
		data, is := set.(netflow.DataFlowSet)
		if !is {
			continue
		}
		for _, record := range data.Records {
			var values []value
			for _, field := range record.Values {
				v := value{id: field.Type, octets: string(field.Value.([]byte))}
				if field.PenProvided {
					v.enterprise = field.Pen
				}
				values = append(values, v)
			}
			all = append(all, values)
		}
	}
	return all
}

// TestGoflowReadsTheSame: goflow2, a collector in Go, finds the values of each record.
func TestGoflowReadsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	templates := netflow.CreateTemplateSystem()
	var got, want [][]value
	e := ipfix.New(7, documentation, func(b []byte) {
		got = append(got, decoded(t, slices.Clone(b), templates)...)
	})
	for now := range 3 {
		e.Begin(exported, now != 1)
		for range 200 {
			if r.IntN(3) == 0 {
				l := linkOf(r)
				e.Link(l)
				want = append(want, linkValues(l))
				continue
			}
			f := flowOf(r)
			e.Flow(f)
			want = append(want, flowValues(f))
		}
		e.Flush()
	}
	if len(got) != len(want) {
		t.Fatalf("goflow2 finds %d records, not %d", len(got), len(want))
	}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			t.Fatalf("record %d: goflow2 reads\n%s\nnot\n%s", i, fmt.Sprint(got[i]),
				fmt.Sprint(want[i]))
		}
	}
}
