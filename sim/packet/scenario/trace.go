package scenario

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"sextant/sim/packet"
	"sextant/te/topology"
)

// TraceColumns are the columns that a trace of flows must have, by the names in its first line:
// seconds from the start of the run, names of hosts, bytes. Others are ignored, so that the flows
// of a run can be played again.
func TraceColumns() []string { return []string{"start_s", "from", "to", "bytes"} }

// tracedFlow is a line of a trace.
type tracedFlow struct {
	start    packet.Time
	from, to string
	bytes    int64
}

// parseTrace reads a trace in CSV, and sorts it by start.
func parseTrace(text []byte) ([]tracedFlow, error) {
	in := csv.NewReader(bytes.NewReader(text))
	in.Comment, in.TrimLeadingSpace = '#', true
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line must name the columns %v: %w", TraceColumns(), err)
	}
	var at [4]int
	for i, name := range TraceColumns() {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, fmt.Errorf("there is no column %s in the first line, which must name %v",
				name, TraceColumns())
		}
	}
	scheme, seed := slices.Index(head, "scheme"), slices.Index(head, "seed")
	var flows []tracedFlow
	var first []string
	for {
		row, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		if first == nil {
			first = row
		}
		for _, column := range []int{scheme, seed} {
			if column >= 0 && row[column] != first[column] {
				return nil, fmt.Errorf("line %d: flows of several runs, with %s %q and %q; keep "+
					"the lines of one", line, head[column], first[column], row[column])
			}
		}
		seconds, startErr := strconv.ParseFloat(row[at[0]], 64)
		size, sizeErr := strconv.ParseInt(row[at[3]], 10, 64)
		const most = math.MaxInt64 / float64(packet.Second)
		switch {
		case startErr != nil || !(seconds >= 0 && seconds < most):
			return nil, fmt.Errorf("line %d: start_s is %q; state seconds from the start of the "+
				"run", line, row[at[0]])
		case sizeErr != nil || size < 1 || size >= packet.Endless:
			return nil, fmt.Errorf("line %d: bytes is %q; state a number above 0", line, row[at[3]])
		case row[at[1]] == row[at[2]]:
			return nil, fmt.Errorf("line %d: the flow leads from %q to itself", line, row[at[1]])
		}
		flows = append(flows,
			tracedFlow{start: packet.Time(math.Round(seconds * float64(packet.Second))),
				from: row[at[1]], to: row[at[2]], bytes: size})
	}
	slices.SortStableFunc(flows, func(a, b tracedFlow) int { return cmp.Compare(a.start, b.start) })
	return flows, nil
}

// traced is the stream of the flows of the trace that start within the run.
func (c *Scenario) traced(g *topology.Graph,
	n *packet.Network) (func() (packet.Flow, bool), error) {
	host := map[string]int{}
	for i, v := range n.Hosts {
		host[g.Node(topology.Node(v)).Name] = i
	}
	var flows []packet.Flow
	for _, f := range c.Traffic.traced {
		for _, name := range []string{f.from, f.to} {
			if _, known := host[name]; !known {
				return nil, fmt.Errorf("traffic.trace: %q is no host of topology %s", name,
					g.Name())
			}
		}
		if f.start < duration(c.until().Nanoseconds()) {
			flows = append(flows, packet.Flow{Src: host[f.from], Dst: host[f.to], Bytes: f.bytes,
				Start: f.start, Subflows: c.Transport.Subflows})
		}
	}
	return func() (f packet.Flow, more bool) {
		if len(flows) == 0 {
			return f, false
		}
		f, flows = flows[0], flows[1:]
		return f, true
	}, nil
}
