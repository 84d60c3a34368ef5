package listener

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/controller/collector"
	"sextant/controller/ipfix"
	"sextant/packet/flow"
)

const (
	// exportParts is in how many parts links and flows are exported, so that neither the listener
	// nor a collector of IPFIX has all of them to do at once.
	exportParts = 64
	// templatesEvery is how often templates are sent again.
	templatesEvery = time.Minute
)

// flowExport sends IPFIX by UDP, and waits for nothing: what the kernel does not take at once is
// counted as failed.
type flowExport struct {
	conn            *net.UDPConn
	raw             syscall.RawConn
	encoder         *ipfix.Encoder
	part            int
	templates       time.Time // when they were last sent
	flows, links    uint64    // records
	messages, fails uint64
}

func newFlowExport(to netip.AddrPort, enterprise uint32) (*flowExport, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket to the IPFIX collector %s: %w; is there a "+
			"route to it?",
			to, err)
	}
	_ = conn.SetReadBuffer(0) // nothing is read: the kernel keeps the least it can
	e := &flowExport{conn: conn}
	e.encoder = ipfix.New(0, enterprise, e.send)
	if e.raw, err = conn.SyscallConn(); err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

func (e *flowExport) send(message []byte) {
	var err error
	if e.raw.Write(func(fd uintptr) bool {
		err = unix.Send(int(fd), message, unix.MSG_DONTWAIT)
		return true
	}) != nil || err != nil {
		e.fails++
		return
	}
	e.messages++
}

// export sends what the next part of the table has to say that it did not say before.
func (e *flowExport) export(table *collector.Table, now time.Time) {
	templates := now.Sub(e.templates) >= templatesEvery
	if templates {
		e.templates = now
	}
	e.encoder.Begin(now, templates)
	table.EachLinkOf(e.part, exportParts, e.link)
	table.EachPathOf(e.part, exportParts, e.flow)
	e.encoder.Flush()
	e.part = (e.part + 1) % exportParts
}

// exportAll sends all that the table has to say that it did not say before.
func (e *flowExport) exportAll(table *collector.Table, now time.Time) {
	for range exportParts {
		e.export(table, now)
	}
}

func (e *flowExport) link(l collector.Link, s *collector.LinkState, _ int64) {
	d := s.TakeRecent()
	if d.Samples == 0 && d.Drops == 0 {
		return
	}
	e.links++
	e.encoder.Link(ipfix.Link{Node: l.Node, Egress: l.Egress,
		Interval:   interval(d.FirstNS, d.LastNS, d.Samples, d.Drops),
		QueueBytes: extent(d.QueueBytes), LatencyNS: extent(d.LatencyNS),
		UtilizationPPM: extent(d.UtilizationPPM)})
}

func (e *flowExport) flow(f flow.Tuple, p *collector.Path, _ int64) {
	d := p.TakeRecent()
	if d.Packets == 0 {
		return
	}
	e.flows++
	record := ipfix.Flow{Tuple: f, Routing: p.Routing(),
		Interval: interval(d.FirstNS, d.LastNS, d.Packets, d.Drops)}
	if d.DelayUS.Count > 0 {
		record.Delay = &ipfix.Delay{MeanUS: d.DelayUS.Mean(), MinUS: d.MinUS,
			MaxUS: d.DelayUS.Max, SumUS: d.DelayUS.Sum}
	}
	e.encoder.Flow(record)
}

func interval(firstNS, lastNS int64, packets, drops uint64) ipfix.Interval {
	return ipfix.Interval{Start: time.Unix(0, firstNS), End: time.Unix(0, lastNS),
		Packets: packets, Drops: drops}
}

func extent(e collector.Extent) ipfix.Extent {
	if e.Count == 0 {
		return ipfix.Extent{Mean: unknownValue, Max: unknownValue}
	}
	return ipfix.Extent{Mean: e.Mean(), Max: e.Max}
}

// unknownValue is what INT calls a value that is not available.
const unknownValue = ^uint32(0)
