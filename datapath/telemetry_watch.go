package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// SetWatch says what the sink reports, from now on. Without reasons it reports nothing, and
// remembers no flows.
func (t *Telemetry) SetWatch(w model.TelemetryWatch) error {
	return t.maps["telemetry_watches"].Put(uint32(0), telemetryWatch{
		GapNs: w.GapNS, GapRTTs: w.GapRTTs, FlowIntervalNs: w.FlowIntervalNS, Queue: w.QueueBytes,
		QueueChange: w.QueueChange, Reasons: uint32(w.Reasons), Limit: w.Limit,
	})
}

// SetUtilization says how much of the rate of interfaces is used, in parts per million by their
// index: of those whose qdisc does not count what it sends. Of others it is not known.
func (t *Telemetry) SetUtilization(ppm map[uint32]uint32) error {
	var index, used uint32
	known := t.maps["telemetry_utilization"].Iterate()
	var gone []uint32
	for known.Next(&index, &used) {
		if _, stays := ppm[index]; !stays {
			gone = append(gone, index)
		}
	}
	err := known.Err()
	for _, index := range gone {
		err = errors.Join(err, t.maps["telemetry_utilization"].Delete(index))
	}
	for index, used := range ppm {
		err = errors.Join(err, t.maps["telemetry_utilization"].Put(index, used))
	}
	return err
}

// meterOctets are what a link sends in the time over which its utilization is an average: 160 us at
// 10 Gb/s, as CONGA has it.
const meterOctets = 200_000

// SetRates says how fast interfaces can send, in kbit/s by their index: the programs meter what
// they send. An error keeps what is in force, and the next call tries again.
func (t *Telemetry) SetRates(kbps map[uint32]int) error {
	var err error
	for index := range t.rates {
		if kbps[index] == 0 {
			err = errors.Join(err, t.maps["telemetry_rates"].Delete(index))
			delete(t.rates, index)
		}
	}
	for index, rate := range kbps {
		if rate == 0 || t.rates[index] == rate {
			continue
		}
		put := t.maps["telemetry_rates"].Put(index, rateOf(rate))
		if err = errors.Join(err, put); put == nil {
			t.rates[index] = rate
		}
	}
	return err
}

// rateOf is of a link that sends so many kbit/s.
func rateOf(kbps int) telemetryRate {
	perSecond := float64(kbps) * 1000 / 8
	return telemetryRate{Rate: uint64(perSecond * (1 << srpolicy.MeterUnit) / 1e9),
		Constant: uint64(meterOctets * 1e9 / perSecond)}
}

// Reasons counts the reports by each of their reasons.
func (t *Telemetry) Reasons() ([]Counter, error) {
	var list []Counter
	for bit := range uint32(model.TelemetryReasonBits) {
		packets, err := sumPerCPU(t.maps["telemetry_reasons"], bit,
			func(total *uint64, v uint64) { *total += v })
		if err != nil {
			return nil, fmt.Errorf("read telemetry's reasons: %w", err)
		}
		reason := model.TelemetryReasons(1) << bit
		list = append(list, Counter{Name: reason.String(), Packets: packets})
	}
	return list, nil
}

// Pause is a flow of which no packet has come for long.
type Pause struct {
	Flow  flow.Tuple
	GapNS uint64 // until now
	// LastNS is when its last packet came, by CLOCK_MONOTONIC: what tells pauses of a flow apart.
	LastNS uint64
}

// Pauses finds flows whose last packet came longer ago than the watch says, and that have not
// ended: the pauses that the sink cannot see before a next packet. It goes through all flows.
func (t *Telemetry) Pauses(w model.TelemetryWatch) ([]Pause, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	var pauses []Pause
	var cursor ebpf.MapBatchCursor
	keys, flows := make([]telemetryFlowKey, 1024), make([]telemetryFlow, 1024)
	for {
		n, err := t.maps["telemetry_flows"].BatchLookup(&cursor, keys, flows, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, fmt.Errorf("look for paused flows: %w", err)
		}
		for i := range n {
			least := max(w.GapNS, uint64(w.GapRTTs)*flows[i].RTTNs)
			gap := uint64(now.Nano()) - flows[i].LastNs
			if least > 0 && flows[i].State&telemetryEnded == 0 && int64(gap) > int64(least) {
				pauses = append(pauses, Pause{keys[i].tuple(), gap, flows[i].LastNs})
			}
		}
		if err != nil {
			return pauses, nil
		}
	}
}

const telemetryEnded = 1 // TELEMETRY_ENDED

func (k telemetryFlowKey) tuple() flow.Tuple {
	if k.Version == 0 {
		return flow.Tuple{}
	}
	t := flow.Tuple{
		Src: netip.AddrFrom16(k.Source), Dst: netip.AddrFrom16(k.Destination),
		SrcPort: binary.BigEndian.Uint16(k.SourcePort[:]),
		DstPort: binary.BigEndian.Uint16(k.DestinationPort[:]), Protocol: k.Protocol,
	}
	if k.Version == 4 {
		t.Src, t.Dst = t.Src.Unmap(), t.Dst.Unmap()
	}
	return t
}
