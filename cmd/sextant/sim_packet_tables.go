package main

import (
	"errors"
	"path/filepath"

	"sextant/experiment/tablefile"
	simulator "sextant/sim/packet"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

// packetRun sums up a run.
type packetRun struct {
	Scheme          string  `parquet:"scheme"`
	Seed            uint64  `parquet:"seed"`
	Flows           int     `parquet:"flows"`
	Unfinished      int     `parquet:"unfinished"`
	Goodput         float64 `parquet:"goodput"`
	LeastGoodput    float64 `parquet:"least_goodput"`
	Fairness        float64 `parquet:"fairness"`
	MeanMs          float64 `parquet:"mean_ms"`
	P50Ms           float64 `parquet:"p50_ms"`
	P99Ms           float64 `parquet:"p99_ms"`
	ShortMs         float64 `parquet:"short_ms"`
	ShortP99Ms      float64 `parquet:"short_p99_ms"`
	LongMs          float64 `parquet:"long_ms"`
	Drops           uint64  `parquet:"drops"`
	Lost            uint64  `parquet:"lost"`
	Retransmissions uint64  `parquet:"retransmissions"`
	Timeouts        uint64  `parquet:"timeouts"`
	Reroutes        uint64  `parquet:"reroutes"`
	Reordered       uint64  `parquet:"reordered"`
	PeakLoad        float64 `parquet:"peak_load"`
	Packets         uint64  `parquet:"packets"`
	Hops            uint64  `parquet:"hops"`
	Pauses          uint64  `parquet:"pauses"`
	PausedMs        float64 `parquet:"paused_ms"`
	Victims         uint64  `parquet:"victims"`
	VictimFlows     int     `parquet:"victim_flows"`
	DeadlockMs      float64 `parquet:"deadlock_ms"` // 0: none
}

// packetFlow is a flow that ended; a trace can be read from those of one run.
type packetFlow struct {
	Scheme          string            `parquet:"scheme"`
	Seed            uint64            `parquet:"seed"`
	Start           tablefile.Seconds `parquet:"start_s"`
	From            string            `parquet:"from"`
	To              string            `parquet:"to"`
	Bytes           int64             `parquet:"bytes"`
	Finish          tablefile.Seconds `parquet:"finish_s"`
	Retransmissions int               `parquet:"retransmissions"`
	Timeouts        int               `parquet:"timeouts"`
	Reroutes        int               `parquet:"reroutes"`
}

// packetSize sums up the flows of a run by their size.
type packetSize struct {
	Scheme string  `parquet:"scheme"`
	Seed   uint64  `parquet:"seed"`
	Bytes  int64   `parquet:"bytes"` // at most; the bin before has a tenth
	Flows  int     `parquet:"flows"`
	MeanMs float64 `parquet:"mean_ms"`
	P50Ms  float64 `parquet:"p50_ms"`
	P99Ms  float64 `parquet:"p99_ms"`
}

// packetLink is what a direction of a link carried.
type packetLink struct {
	Scheme      string  `parquet:"scheme"`
	Seed        uint64  `parquet:"seed"`
	From        string  `parquet:"from"`
	To          string  `parquet:"to"`
	Utilization float64 `parquet:"utilization"`
	Bytes       uint64  `parquet:"bytes"`
	Drops       uint64  `parquet:"drops"`
	Marks       uint64  `parquet:"marks"`
	Pauses      uint64  `parquet:"pauses"`
	PausedMs    float64 `parquet:"paused_ms"`
	Victims     uint64  `parquet:"victims"`
	PeakBuffer  int64   `parquet:"peak_buffer"` // bytes behind the link, of lossless queues
}

// packetHost is what an endless flow of a host got, as a part of its link.
type packetHost struct {
	Scheme  string  `parquet:"scheme"`
	Seed    uint64  `parquet:"seed"`
	Host    string  `parquet:"host"`
	Goodput float64 `parquet:"goodput"`
}

func packetRuns(items []*scenario.Result) []packetRun {
	rows := make([]packetRun, len(items))
	for i, r := range items {
		rows[i] = packetRun{r.Scheme, r.Seed, r.Flows, r.Unfinished, r.Goodput, r.LeastGoodput,
			r.Fairness, r.MeanMs, r.P50Ms, r.P99Ms, r.ShortMs, r.ShortP99Ms, r.LongMs, r.Drops,
			r.Lost, r.Retransmissions, r.Timeouts, r.Reroutes, r.Reordered, r.PeakLoad, r.Packets,
			r.Hops, r.Pauses, r.PausedMs, r.Victims, r.VictimFlows, 0}
		if r.Deadlock != nil {
			rows[i].DeadlockMs = r.Deadlock.Ms
		}
	}
	return rows
}

func (p packetFiles) flows(host func(int) string) (rows []packetFlow) {
	for _, r := range p.items {
		for _, f := range r.Ended {
			rows = append(rows, packetFlow{r.Scheme, r.Seed, seconds(f.Flow.Start),
				host(f.Flow.Src), host(f.Flow.Dst), f.Flow.Bytes, seconds(f.Finish),
				f.Retransmissions, f.Timeouts, f.Reroutes})
		}
	}
	return rows
}

func (p packetFiles) sizes() (rows []packetSize) {
	for _, r := range p.items {
		for _, b := range r.Sizes {
			rows = append(rows, packetSize{r.Scheme, r.Seed, b.Bytes, b.Flows, b.MeanMs, b.P50Ms,
				b.P99Ms})
		}
	}
	return rows
}

func seconds(t simulator.Time) tablefile.Seconds {
	return tablefile.Seconds(float64(t) / float64(simulator.Second))
}

func (p packetFiles) links() (rows []packetLink) {
	for _, r := range p.items {
		for i, l := range r.Links {
			e := topology.Edge(i)
			rows = append(rows, packetLink{r.Scheme, r.Seed,
				p.topology.Node(p.topology.From(e)).Name, p.topology.Node(p.topology.To(e)).Name,
				l.Utilization, l.Bytes, l.Drops, l.Marks, l.Pauses, l.Paused.Seconds() * 1000,
				l.Victims, l.Peak})
		}
	}
	return rows
}

func (p packetFiles) hosts(host func(int) string) (rows []packetHost) {
	for _, r := range p.items {
		for number, part := range r.Goodputs {
			rows = append(rows, packetHost{r.Scheme, r.Seed, host(number), part})
		}
	}
	return rows
}

// writeTables writes all tables that have rows.
func (p packetFiles) writeTables() error {
	n, err := p.scenario.Network(p.topology)
	if err != nil {
		return err
	}
	host := func(number int) string { return p.topology.Node(topology.Node(n.Hosts[number])).Name }
	return errors.Join(
		writeTable(p, "runs", packetRuns(p.items)), writeTable(p, "flows", p.flows(host)),
		writeTable(p, "sizes", p.sizes()), writeTable(p, "links", p.links()),
		writeTable(p, "hosts", p.hosts(host)))
}

func writeTable[Row any](p packetFiles, name string, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return tablefile.WriteFile(filepath.Join(p.dir, name+"."+string(p.format)), p.format, rows)
}
