package packet

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sort"
	"strings"
)

//go:embed sizes/*.txt
var sizeFiles embed.FS

// Sizes is a distribution of flow sizes: linear between points, as the literature draws it.
type Sizes struct {
	bytes, atMost []float64 // atMost is the part of the flows that have at most so many bytes
}

// SizeNames lists the distributions that come with the program.
func SizeNames() []string {
	files, _ := fs.ReadDir(sizeFiles, "sizes")
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".txt"))
	}
	return names
}

// NamedSizes is one of the distributions of SizeNames.
func NamedSizes(name string) (*Sizes, error) {
	text, err := fs.ReadFile(sizeFiles, "sizes/"+name+".txt")
	if err != nil {
		return nil, fmt.Errorf("flow sizes %q are not known; choose one of %s", name,
			strings.Join(SizeNames(), ", "))
	}
	return ParseSizes(string(text))
}

// Bounds of distributions: bytes of a flow, and parts in percent.
const (
	mostSize = 1e15
	percent  = 100
)

// ParseSizes reads a distribution: lines of bytes and the part of the flows that have at most so
// many, from 0 to 1 or to 100. Lines that begin with # are comments.
func ParseSizes(text string) (*Sizes, error) {
	d := &Sizes{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		var bytes, part float64
		if n, _ := fmt.Sscan(line, &bytes, &part); n != 2 || len(strings.Fields(line)) != n {
			return nil, fmt.Errorf("flow sizes, line %d: %q is not two numbers: bytes, and the "+
				"part of flows", number, line)
		}
		if !(bytes >= 0 && bytes <= mostSize && part >= 0 && part <= percent) {
			return nil, fmt.Errorf("flow sizes, line %d: %q is not from 0 to %.0e bytes, or no "+
				"part from 0 to %d", number, line, mostSize, percent)
		}
		if last := len(d.bytes) - 1; last >= 0 &&
			(bytes < d.bytes[last] || part < d.atMost[last]) {
			return nil, fmt.Errorf("flow sizes, line %d: %q is below the line before; sort the "+
				"lines", number, line)
		}
		d.bytes, d.atMost = append(d.bytes, bytes), append(d.atMost, part)
	}
	last := len(d.bytes) - 1
	if last < 0 || d.atMost[last] <= 0 || d.bytes[last] < 1 {
		return nil, fmt.Errorf("flow sizes: there are no points, or no flow has a byte")
	}
	whole := d.atMost[last]
	for i := range d.atMost {
		d.atMost[i] /= whole
	}
	return d, nil
}

// FixedSize gives all flows the same size, from 1 to 10^15 bytes.
func FixedSize(bytes int64) *Sizes {
	return &Sizes{bytes: []float64{float64(bytes)}, atMost: []float64{1}}
}

// Mean is the mean size in bytes.
func (d *Sizes) Mean() float64 {
	mean := d.bytes[0] * d.atMost[0]
	for i := 1; i < len(d.bytes); i++ {
		mean += (d.atMost[i] - d.atMost[i-1]) * (d.bytes[i] + d.bytes[i-1]) / 2
	}
	return mean
}

// Draw is a random size of at least one byte.
func (d *Sizes) Draw(r *rand.Rand) int64 {
	u := r.Float64()
	i := sort.SearchFloat64s(d.atMost, u)
	if i == 0 || i == len(d.atMost) {
		return max(int64(d.bytes[min(i, len(d.bytes)-1)]), 1)
	}
	x0, x1, y0, y1 := d.bytes[i-1], d.bytes[i], d.atMost[i-1], d.atMost[i]
	return max(int64(x0+(x1-x0)*(u-y0)/(y1-y0)), 1)
}

// Permutation gives each of n hosts another host as its destination, and each host one source.
func Permutation(n int, r *rand.Rand) []int {
	for {
		p, fixed := r.Perm(n), false
		for i, to := range p {
			fixed = fixed || i == to
		}
		if !fixed {
			return p
		}
	}
}

// Poisson is a stream of flows between random hosts; gaps are exponentially distributed.
type Poisson struct {
	Hosts    int
	Gap      float64 // mean, in seconds
	Sizes    *Sizes
	Until    Time
	Subflows int
	// Pair chooses the ends; nil: both at random, and different.
	Pair func(*rand.Rand) (src, dst int)
	at   float64
}

// Next is the next flow, false after the last.
func (p *Poisson) Next(r *rand.Rand) (Flow, bool) {
	p.at += r.ExpFloat64() * p.Gap
	at := p.at * float64(Second)
	if !(at < float64(p.Until)) || Time(at) >= p.Until { // far beyond, Time overflows
		return Flow{}, false
	}
	f := Flow{Start: Time(at), Bytes: p.Sizes.Draw(r), Subflows: p.Subflows}
	if p.Pair != nil {
		f.Src, f.Dst = p.Pair(r)
		return f, true
	}
	f.Src = r.IntN(p.Hosts)
	f.Dst = (f.Src + 1 + r.IntN(p.Hosts-1)) % p.Hosts
	return f, true
}

// Feed adds flows one by one as their times come, so that those of the future take no memory.
func (s *Simulation) Feed(next func() (Flow, bool)) {
	s.feeds = append(s.feeds, feed{next: next})
	s.refill(int32(len(s.feeds) - 1))
}

// feed is a stream of flows, and the next of them.
type feed struct {
	next func() (Flow, bool)
	flow Flow
}

// refill plans the next flow of a feed.
func (s *Simulation) refill(number int32) {
	f := &s.feeds[number]
	var ok bool
	if f.flow, ok = f.next(); ok {
		s.at(feedTick, number, max(f.flow.Start, s.now))
	}
}

// feedFlow adds the flow of a feed whose time has come.
func (s *Simulation) feedFlow(number int32) {
	f := s.feeds[number].flow
	f.Start = s.now
	if _, err := s.Add(f); err != nil {
		s.failure = err
		s.stopped = true
		return
	}
	s.refill(number)
}

// Err is why a run stopped early, if it did because of a flow that a feed gave.
func (s *Simulation) Err() error { return s.failure }
