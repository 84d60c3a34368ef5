package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"sextant/config"
	"sextant/te/reroute"
)

// DefaultSocket is where the API is served if nothing else is said.
const DefaultSocket = "/run/sextant/controller.sock"

// Config is a controller's file.
type Config struct {
	// Topology is a file in any format, a topology of the data sets, what neighbors tell by BGP-LS
	// (bgp), or what FRRouting on this machine knows: ospf6 or isis.
	Topology   string     `yaml:"topology"`
	FRR        string     `yaml:"frr"`   // directory of FRRouting's sockets
	BGP        Speaker    `yaml:"bgp"`   // learns the topology
	Block      string     `yaml:"block"` // of the domain's SIDs
	API        API        `yaml:"api"`
	Journal    string     `yaml:"journal"` // file of decisions, a line of JSON each; none if empty
	Policy     Policy     `yaml:"policy"`
	Seed       uint64     `yaml:"seed"`       // of random draws; 0: another one at each start
	Queue      int64      `yaml:"queueBytes"` // size of the queue before a link, in bytes
	Links      []Queue    `yaml:"links"`      // those whose queues have another size
	Routers    []Router   `yaml:"routers"`
	Southbound Southbound `yaml:"southbound"`
	Standby    Standby    `yaml:"standby"`
	Telemetry  Telemetry  `yaml:"telemetry"`
	CFLB       *CFLB      `yaml:"cflb"` // nil: sources choose no paths
}

// API is where the controller answers.
type API struct {
	Socket  string         `yaml:"socket"`
	Metrics netip.AddrPort `yaml:"metrics"` // none if not set
	Listen  *config.Listen `yaml:"listen"`  // over TLS 1.3; nil: on the socket alone
}

// Queue is what the topology does not say about a link, in one direction. Several with the same
// ends and interfaces are parallel links, in the order of the topology.
type Queue struct {
	From  string `yaml:"from"`
	To    string `yaml:"to"`
	Bytes int64  `yaml:"queueBytes"`
	// Interface is the number that the router at its beginning has for the link, in telemetry; 0:
	// it is not told from parallel links.
	Interface uint32 `yaml:"interface"`
	// Gateways are the addresses of the next hop that the link leads to, one of each IP version,
	// and Device is the name of the interface that it leaves by: they order next hops for CFLB.
	Gateways []netip.Addr `yaml:"gateways"`
	Device   string       `yaml:"device"`
}

func (q Queue) says() bool { return q.Interface != 0 || len(q.Gateways) > 0 || q.Device != "" }

// Policy is how flows get other paths. Policy and metric of its settings are those of the names.
type Policy struct {
	Name string `yaml:"name"`
	// Tau is the sinks' threshold of pauses: times that the file does not say scale with it.
	Tau              time.Duration `yaml:"tau"`
	Metric           string        `yaml:"metric"`
	reroute.Settings `yaml:",inline"`
}

// hops is the metric by which all links are alike.
const hops = "hops"

// defaultQueue is a size that small switches have.
const defaultQueue = 96_000

// maxTau is longer than a round trip takes anywhere.
const maxTau = time.Minute

// maxConfig bounds a file, in bytes.
const maxConfig = 16 << 20

// Parse reads a controller's file. What it does not say about its policy is as
// reroute.Defaults has it.
func Parse(text []byte) (*Config, error) {
	if len(text) > maxConfig {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are read", len(text), maxConfig)
	}
	var first struct {
		Policy struct {
			Name string        `yaml:"name"`
			Tau  time.Duration `yaml:"tau"`
		} `yaml:"policy"`
		Routers []Router `yaml:"routers"`
	}
	if err := yaml.Unmarshal(text, &first); err != nil {
		return nil, err
	}
	if first.Policy.Name == "" {
		first.Policy.Name = reroute.Sextant.String()
	}
	kind, err := reroute.ParsePolicy(first.Policy.Name)
	if err != nil {
		return nil, fmt.Errorf("policy.name: %w", err)
	}
	if first.Policy.Tau == 0 {
		first.Policy.Tau = reroute.DefaultTau
	}
	if first.Policy.Tau < 0 || first.Policy.Tau > maxTau {
		return nil, fmt.Errorf("policy.tau %v: write the pause from which on sinks report, "+
			"above 0 and at most %v", first.Policy.Tau, maxTau)
	}
	d := defaultPolicy(kind, first.Policy.Tau, slices.ContainsFunc(first.Routers,
		func(r Router) bool { return len(r.Prefixes) > 0 }))
	c := &Config{API: API{Socket: DefaultSocket}, FRR: defaultFRR, Queue: defaultQueue,
		Southbound: Southbound{Lease: defaultLease, Hold: defaultHold},
		Standby:    Standby{Lease: defaultStandbyLease, Etcd: Etcd{Prefix: defaultEtcdPrefix}}}
	c.Policy = Policy{Name: kind.String(), Tau: first.Policy.Tau, Metric: hops, Settings: d}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, err
	}
	if c.Policy.Name == "" { // written, and left empty
		c.Policy.Name = kind.String()
	}
	return c, c.check()
}

// Head-ends are told weights once in so many taus, and flows choose again after so many, by
// policies that switch at pauses, if the file does not say otherwise.
const groupsPerTau, flowletPerTau = 100, 5

// defaultPolicy is what a file need not say of a policy; spreads: routers have prefixes, to which
// flows can be spread when they begin.
func defaultPolicy(p reroute.Policy, tau time.Duration, spreads bool) reroute.Settings {
	d := reroute.Defaults(p).Scaled(tau)
	if !spreads || !p.Spreads() {
		return d
	}
	d = d.Spreading(groupsPerTau * tau)
	if p != reroute.Sextant {
		d.Flowlet = flowletPerTau * tau
	}
	return d
}

func (c *Config) check() error {
	if c.Topology == "" {
		return fmt.Errorf("topology: name a file, or a topology that " +
			"\"sextant topology list\" shows")
	}
	if c.API.Socket == "" {
		return fmt.Errorf("api.socket: name a path, or leave the key out for %s", DefaultSocket)
	}
	if l := c.API.Listen; l != nil {
		if faults := l.Faults("api.listen"); len(faults) > 0 {
			return faults[0]
		}
	}
	if c.Queue < 1 {
		return fmt.Errorf("queueBytes %d: a queue holds a byte at least", c.Queue)
	}
	for i, q := range c.Links {
		if q.Bytes < 1 && (!q.says() || q.Bytes < 0) {
			return fmt.Errorf("links[%d], from %s to %s: queueBytes %d: a queue holds a byte at "+
				"least", i, q.From, q.To, q.Bytes)
		}
	}
	if err := c.checkSource(); err != nil {
		return err
	}
	if err := c.Southbound.check(); err != nil {
		return err
	}
	if err := c.checkSpread(); err != nil {
		return err
	}
	if err := c.Standby.check(c.Southbound); err != nil {
		return err
	}
	if err := c.Telemetry.check(); err != nil {
		return err
	}
	if err := c.CFLB.check(); err != nil {
		return err
	}
	s, err := c.Policy.settings()
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := s.Check(); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if c.Southbound.serves() && s.Forget == 0 {
		return fmt.Errorf("policy.forget 0s: head-ends would keep paths of flows that ended for " +
			"ever; write a time above 0")
	}
	return nil
}

func (p Policy) settings() (s reroute.Settings, err error) {
	s = p.Settings
	if s.Policy, err = reroute.ParsePolicy(p.Name); err != nil {
		return s, err
	}
	s.Metric, err = reroute.ParseMetric(p.Metric)
	return s, err
}
