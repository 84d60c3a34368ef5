package format

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sextant/te/topology"
)

// The weights of Rocketfuel are multiples of a half; REPETITA and the papers that follow it use a
// hundred times as much.
const rocketfuelScale = 100

// ReadRocketfuel reads the two files of a network that the Rocketfuel project measured ("Inferring
// Link Weights using End-to-End Measurements", IMW 2002): weights.intra and latencies.intra, whose
// lines are "nodeA nodeB value", a directed edge each. Weights are multiplied by 100 to be whole;
// latencies are milliseconds. Of parallel edges, the i-th of one file is the i-th of the other.
// Nodes are numbered as they appear in the weights.
func ReadRocketfuel(name string, weights, latencies File) (*topology.Graph, error) {
	w, l := newSource(weights, 0), newSource(latencies, 0)
	for _, s := range []*source{w, l} {
		if err := s.isText(Rocketfuel); err != nil {
			return nil, err
		}
	}
	waiting, err := l.latencies()
	if err != nil {
		return nil, err
	}
	b := w.builder(name, time.Millisecond)
	for _, at := range w.lines() {
		if err := b.rocketfuelEdge(at, waiting); err != nil {
			return nil, err
		}
	}
	if ends, line := leftOver(waiting); line > 0 {
		return nil, l.errorf(line, "there is no edge from %s to %s in %s; add it there", ends[0],
			ends[1], weights.Name)
	}
	return b.Build(), nil
}

// leftOver finds the first latency that belongs to no edge.
func leftOver(waiting map[[2]string][]latency) (ends [2]string, line int) {
	for e, left := range waiting {
		if len(left) > 0 && (line == 0 || left[0].line < line) {
			ends, line = e, left[0].line
		}
	}
	return ends, line
}

type latency struct {
	ms   int64
	line int
}

// latencies reads latencies by the names of the ends, in the order of the lines.
func (s *source) latencies() (map[[2]string][]latency, error) {
	all := map[[2]string][]latency{}
	for _, l := range s.lines() {
		if len(l.words) != 3 {
			return nil, s.errorf(l.number,
				`%d words where 3 belong; write "nodeA nodeB milliseconds"`, len(l.words))
		}
		ms, err := parseDelay(l.words[2])
		if err != nil {
			return nil, s.errorf(l.number, "%w", err)
		}
		ends := [2]string{l.words[0], l.words[1]}
		all[ends] = append(all[ends], latency{ms, l.number})
	}
	return all, nil
}

func (b builder) rocketfuelEdge(l line, waiting map[[2]string][]latency) error {
	if len(l.words) != 3 {
		return b.s.errorf(l.number, `%d words where 3 belong; write "nodeA nodeB weight"`,
			len(l.words))
	}
	ends := [2]string{l.words[0], l.words[1]}
	queue := waiting[ends]
	if len(queue) == 0 {
		return b.s.errorf(l.number,
			"the edge from %s to %s has no latency; add it to latencies.intra", ends[0], ends[1])
	}
	waiting[ends] = queue[1:]
	e := topology.EdgeSpec{Delay: queue[0].ms}
	for i, end := range []*topology.Node{&e.From, &e.To} {
		v, err := b.nodeNamed(l.number, ends[i])
		if err != nil {
			return err
		}
		*end = v
	}
	var err error
	if e.Weight, err = hundredfold(l.words[2]); err != nil {
		return b.s.errorf(l.number, "%w", err)
	}
	return b.edge(l.number, e)
}

// hundredfold reads a number of at most two decimals and multiplies it by 100.
func hundredfold(text string) (uint32, error) {
	units, decimals, _ := strings.Cut(text, ".")
	if len(decimals) > 2 {
		return 0, fmt.Errorf("weight %q has more than two decimals; round it", text)
	}
	n, err := strconv.ParseUint(units+(decimals + "00")[:2], 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("weight %q is no number above 0 and below %d", text,
			uint32(1<<32-1)/rocketfuelScale)
	}
	return uint32(n), nil
}

// WriteRocketfuel writes the two files of [ReadRocketfuel]. It fails if a delay is no whole number
// of milliseconds, or the unit of delays is not known.
func WriteRocketfuel(g *topology.Graph) (weights, latencies []byte, err error) {
	if g.DelayUnit() == 0 {
		return nil, nil, fmt.Errorf("write %s as rocketfuel: the unit of its delays is not "+
			"known; name it", g.Name())
	}
	var w, l bytes.Buffer
	names := wordNames(g)
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		ms, err := milliseconds(e.Delay, g.DelayUnit())
		if err != nil {
			return nil, nil, fmt.Errorf("write %s as rocketfuel: %w", g.Name(), err)
		}
		weight := strconv.FormatFloat(float64(e.Weight)/rocketfuelScale, 'f', -1, 64)
		fmt.Fprintf(&w, "%s %s %s\n", names[e.From], names[e.To], weight)
		fmt.Fprintf(&l, "%s %s %d\n", names[e.From], names[e.To], ms)
	}
	return w.Bytes(), l.Bytes(), nil
}

func milliseconds(delay int64, unit time.Duration) (int64, error) {
	if unit >= time.Millisecond {
		return delay * int64(unit/time.Millisecond), nil
	}
	perMs := int64(time.Millisecond / unit)
	if delay%perMs != 0 {
		return 0, fmt.Errorf("a delay of %d %s is no whole number of milliseconds, which is all "+
			"that Rocketfuel has; choose another format",
			delay, DelayUnitName(unit))
	}
	return delay / perMs, nil
}
