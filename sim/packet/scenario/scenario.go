package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"sextant/sim/packet"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

// Scenario is a file of sextant sim packet.
type Scenario struct {
	Topology  Topology      `yaml:"topology"`
	Links     Links         `yaml:"links"`
	Queue     Queue         `yaml:"queue"`
	Transport Transport     `yaml:"transport"`
	Paths     Paths         `yaml:"paths"`
	Traffic   Traffic       `yaml:"traffic"`
	Mode      string        `yaml:"mode"` // packet, or flow: max-min rates instead of packets
	Duration  time.Duration `yaml:"duration"`
	Seeds     int           `yaml:"seeds"`
	Failures  []Failure     `yaml:"failures"`
}

// Topology says which network it is.
type Topology struct {
	Kind   string `yaml:"kind"` // fat-tree, leaf-spine, vl2, bcube or file
	K      int    `yaml:"k"`    // of a fat tree: ports; of a BCube: levels less one
	N      int    `yaml:"n"`    // ports of a BCube's switches
	Leaves int    `yaml:"leaves"`
	Spines int    `yaml:"spines"`
	Hosts  int    `yaml:"hosts"` // at each leaf, or at each rack of a VL2
	DA     int    `yaml:"da"`    // ports of a VL2's aggregation switches
	DI     int    `yaml:"di"`    // ports of its intermediate switches
	File   string `yaml:"file"`
}

// Links says how fast links are; what is not stated is as the topology has it.
type Links struct {
	Rate   string         `yaml:"rate"`   // 10Gbps
	Fabric string         `yaml:"fabric"` // rate of links between switches, if it differs
	Delay  *time.Duration `yaml:"delay"`
	Slow   []SlowLink     `yaml:"slow"`
}

// SlowLink is a link with another rate, in both directions.
type SlowLink struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
	Rate string `yaml:"rate"`
}

// Queue says how many packets of 1500 bytes fit the queue before a link, and from how many on ECN
// marks.
type Queue struct {
	Packets int `yaml:"packets"`
	Mark    int `yaml:"mark"`
	Random  int `yaml:"random"` // the last of them, where a tenth is dropped at random
	Host    int `yaml:"host"`   // of links that leave hosts; 0: without end

	Lossless *Lossless `yaml:"lossless"` // switches pause their senders, and Packets does not count
}

// Transport says how hosts send.
type Transport struct {
	Control       string        `yaml:"control"` // reno, cubic, dctcp, lia or olia
	Subflows      int           `yaml:"subflows"`
	ECN           *bool         `yaml:"ecn"` // by default dctcp alone
	MinRTO        time.Duration `yaml:"minRTO"`
	DelayedAck    *int64        `yaml:"delayedAckUs"`
	InitialWindow int           `yaml:"initialWindow"`
	SSThresh      int           `yaml:"ssthresh"` // segments at which the first slow start ends
	Reordering    int           `yaml:"reordering"`
	FreeAcks      bool          `yaml:"freeAcks"` // acknowledgements take no link
	Linux         bool          `yaml:"linux"`    // beside the RFCs, what Linux does
}

// Paths says how paths are chosen.
type Paths struct {
	Scheme      string        `yaml:"scheme"`
	FlowletGap  time.Duration `yaml:"flowletGap"`
	Convergence time.Duration `yaml:"convergence"`
	// paths lead over a node whose name begins so, in two steps; of a VL2 int if not stated, and
	// none: paths are shortest
	Through  string `yaml:"through"`
	Parallel bool   `yaml:"parallel"` // sources of a BCube take its parallel paths
	Capped   bool   `yaml:"capped"`   // no more subflows than paths
	// time constant of measured utilization, of conga, hula and clove-int
	Meter time.Duration `yaml:"meter"`
	Probe time.Duration `yaml:"probe"` // period of hula's and hermes's probes
	// of reps: time without exploration after a loss
	Freeze time.Duration `yaml:"freeze"`
	Cutoff time.Duration `yaml:"cutoff"` // of conweave: after which a reply is late
	// of rerouted and best-response, in flow mode: how often flows look at another path
	Reroute time.Duration `yaml:"reroute"`

	Controller Controller `yaml:"controller"` // of smoothie and sextant
}

// Controller is a controller that moves flows.
type Controller struct {
	Sample  float64       `yaml:"sample"` // part of the packets that carry telemetry
	Pause   time.Duration `yaml:"pause"`  // of a flow, from which on it is reported
	Backoff time.Duration `yaml:"backoff"`
	// how often first switches learn weights by which flows that begin are spread, of sextant; 0s:
	// never
	Groups       *time.Duration `yaml:"groups"`
	Flowlet      *time.Duration `yaml:"flowlet"`     // pause after which they choose again; 0s: never
	Utilization  bool           `yaml:"utilization"` // telemetry tells how much of links is used
	ReportDelay  *time.Duration `yaml:"reportDelay"`
	ControlDelay *time.Duration `yaml:"controlDelay"`
}

// Traffic says who sends to whom.
type Traffic struct {
	// permutation, of endless flows; random; clients: random from hosts of even number to others;
	// or trace
	Pattern string  `yaml:"pattern"`
	Sizes   string  `yaml:"sizes"` // of random flows: a name, a number of bytes, or a file
	Trace   string  `yaml:"trace"` // a file of flows
	Load    float64 `yaml:"load"`  // of random flows: part of the hosts' rate
	// random flows start until then; 0: as long as the run lasts
	Until time.Duration `yaml:"until"`

	Constant []Constant `yaml:"constant"` // besides

	drawn  *packet.Sizes // what sizes says
	traced []tracedFlow
}

// Constant is a stream of packets of 1500 bytes that heeds no congestion.
type Constant struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
	Rate string `yaml:"rate"`
}

// Failure is a link that fails, in both directions, and may return.
type Failure struct {
	From string        `yaml:"from"`
	To   string        `yaml:"to"`
	At   time.Duration `yaml:"at"`
	Back time.Duration `yaml:"back"` // when it returns; 0: never
}

var controls = map[string]packet.Control{
	"reno": packet.Reno, "cubic": packet.Cubic, "dctcp": packet.DCTCP, "lia": packet.LIA,
	"olia": packet.OLIA,
}

var schemes = map[string]packet.Scheme{
	"ecmp": packet.ECMP, "random": packet.Random, "cflb": packet.Greedy,
	"flowlets": packet.Flowlets, "plb": packet.PLB,
	"reps": packet.REPS, "clove": packet.Clove, "rerouted": packet.Rerouted, "spray": packet.Spray,
	"drill": packet.DRILL, "letflow": packet.LetFlow, "conga": packet.CONGA, "hula": packet.HULA,
	"coloring": packet.Colored, "prr": packet.PRR, "clove-int": packet.CloveINT,
	"in-flight": packet.InFlight, "hermes": packet.Hermes, "conweave": packet.ConWeave,
	"smoothie": packet.Controlled, "sextant": packet.Controlled,
	"smoothie-clove": packet.Controlled, "best-response": packet.BestResponse,
}

// Schemes lists the names of ways to choose paths.
func Schemes() []string { return names(schemes) }

func names[T any](m map[string]T) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func named[T any](what string, m map[string]T, name string) (T, error) {
	v, ok := m[name]
	if !ok {
		return v, fmt.Errorf("%s: %q is not known; choose one of %s", what, name,
			strings.Join(names(m), ", "))
	}
	return v, nil
}

// Parse reads a scenario and checks what can be checked without its topology. It reads the files
// that the traffic names by read; nil: there are none.
func Parse(text []byte, read func(file string) ([]byte, error)) (*Scenario, error) {
	c := &Scenario{}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, plainly(err)
	}
	if c.Seeds == 0 {
		c.Seeds = 1
	}
	if c.Transport.Control == "" {
		c.Transport.Control = "cubic"
	}
	if c.Paths.Scheme == "" {
		c.Paths.Scheme = "ecmp"
	}
	if c.Mode == "" {
		c.Mode = "packet"
	}
	packets := c.Queue.Packets
	if packets == 0 {
		c.Queue.Packets = 100
	}
	_, controlErr := named("transport.control", controls, c.Transport.Control)
	_, schemeErr := named("paths.scheme", schemes, c.Paths.Scheme)
	for _, err := range []error{controlErr, schemeErr, c.Topology.check(),
		c.checkLossless(packets), c.checkNumbers(), c.Traffic.load(read)} {
		if err != nil {
			return nil, err
		}
	}
	switch {
	case c.Mode != "packet" && c.Mode != "flow":
		return nil, fmt.Errorf("mode: %q is not known; choose packet or flow", c.Mode)
	case c.Mode == "flow" && (c.Traffic.Pattern == "permutation" ||
		len(c.Failures)+len(c.Traffic.Constant) > 0):
		return nil, fmt.Errorf("mode: flow knows flows that end alone, without failures; take " +
			"those out, or choose packet")
	case c.Duration <= 0:
		return nil, fmt.Errorf("duration: state how long a run lasts, for instance 100ms")
	case c.Paths.Parallel && c.Topology.Kind != "bcube":
		return nil, fmt.Errorf("paths.parallel: topology.kind is %q; parallel paths are those of "+
			"a bcube", c.Topology.Kind)
	case c.Traffic.Until > c.Duration:
		return nil, fmt.Errorf("traffic.until: %s; state a time within the run, which lasts %s",
			c.Traffic.Until, c.Duration)
	case c.Queue.Random > c.Queue.Packets:
		return nil, fmt.Errorf("queue.random %d must be from 0 to queue.packets %d",
			c.Queue.Random, c.Queue.Packets)
	}
	return c, c.checkFailures()
}

// load checks the traffic, and reads the files that it names.
func (t *Traffic) load(read func(string) ([]byte, error)) (err error) {
	switch t.Pattern {
	case "permutation":
		return nil
	case "trace":
		text, err := fileOf("traffic.trace", t.Trace, read)
		if err != nil {
			return err
		}
		if t.traced, err = parseTrace(text); err != nil {
			return fmt.Errorf("traffic.trace: %s: %w", t.Trace, err)
		}
		return nil
	case "random", "clients":
		if !(t.Load > 0 && t.Load < 10) {
			return fmt.Errorf("traffic.load: %g is not a part of the hosts' rate; state one "+
				"above 0, for instance 0.6", t.Load)
		}
		t.drawn, err = t.sizes(read)
		return err
	}
	return fmt.Errorf("traffic.pattern: %q is not known; choose permutation, random, clients or "+
		"trace", t.Pattern)
}

func (t *Traffic) sizes(read func(string) ([]byte, error)) (*packet.Sizes, error) {
	var bytes int64
	var rest string
	if n, _ := fmt.Sscanf(t.Sizes, "%d%s", &bytes, &rest); n == 1 {
		const most = 1_000_000_000_000_000
		if bytes < 1 || bytes > most {
			return nil, fmt.Errorf("traffic.sizes: %d bytes; state from 1 to %d", bytes, most)
		}
		return packet.FixedSize(bytes), nil
	}
	if !strings.ContainsAny(t.Sizes, "./") {
		d, err := packet.NamedSizes(t.Sizes)
		if err != nil {
			return nil, fmt.Errorf("traffic.sizes: %w, or a file, like ./sizes.txt", err)
		}
		return d, nil
	}
	text, err := fileOf("traffic.sizes", t.Sizes, read)
	if err != nil {
		return nil, err
	}
	d, err := packet.ParseSizes(string(text))
	if err != nil {
		return nil, fmt.Errorf("traffic.sizes: %s: %w", t.Sizes, err)
	}
	return d, nil
}

// fileOf reads the file that a key names.
func fileOf(key, file string, read func(string) ([]byte, error)) ([]byte, error) {
	if file == "" || read == nil {
		return nil, fmt.Errorf("%s: name a file", key)
	}
	text, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// ParseRate reads a rate in bit/s, like 10Gbps, 100 Mb/s or 1e9.
func ParseRate(text string) (float64, error) {
	number := strings.TrimSpace(text)
	for _, unit := range []string{"bit/s", "bps", "b/s"} {
		number = strings.TrimSuffix(number, unit)
	}
	number = strings.TrimSpace(number)
	factor := 1.0
	if number != "" {
		if f := map[byte]float64{'k': 1e3, 'M': 1e6, 'G': 1e9,
			'T': 1e12}[number[len(number)-1]]; f != 0 {
			factor, number = f, strings.TrimSpace(number[:len(number)-1])
		}
	}
	var rate float64
	var rest string
	if n, _ := fmt.Sscanf(number, "%g%s", &rate, &rest); n != 1 || rate <= 0 {
		return 0, fmt.Errorf("rate %q is not understood; write it like 10Gbps", text)
	}
	const least, highest = 1e3, 1e14 // as of links
	if rate *= factor; !(rate >= least && rate <= highest) {
		return 0, fmt.Errorf("rate %q: state one from 1kbps to 100Tbps", text)
	}
	return rate, nil
}

// Graph is the topology; open reads the file that it names.
func (t *Topology) Graph(open func(file string) (*topology.Graph, error)) (*topology.Graph, error) {
	switch t.Kind {
	case "fat-tree":
		return generate.FatTree(t.K)
	case "leaf-spine":
		return generate.SpineLeaf(t.Spines, t.Leaves, t.Hosts)
	case "vl2":
		return generate.VL2(t.DA, t.DI, t.Hosts)
	case "bcube":
		return generate.BCube(t.N, t.K)
	case "file":
		return open(t.File)
	}
	return nil, t.unknown()
}

func (t *Topology) unknown() error {
	return fmt.Errorf("topology.kind: %q is not known; choose fat-tree, leaf-spine, vl2, bcube or "+
		"file", t.Kind)
}
