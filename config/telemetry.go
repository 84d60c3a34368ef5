package config

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sextant/packet/lists"
	"sextant/packet/telemetry"
)

// Telemetry is the role of a node with in-band telemetry: packets on their way through the SR
// domain carry what nodes know about them, as INT-MD 2.1, IOAM or Path Tracing.
type Telemetry struct {
	// number of the node, by which its metadata names it
	Node int `key:"node" range:"1 4294967294"`
	// UDP destination port behind which INT follows, one in the domain
	Port uint16 `key:"port" as:"udp" default:"33122"`
	// namespace of IOAM, one in the domain; Linux routers have it by "ip ioam namespace add"
	Namespace int `key:"namespace" omit:"zero" range:"0 65535"`
	// by how many bits nodes shift the nanoseconds of their clock for Path Tracing: 8, 12, 16, 20
	TimeShift int `key:"timeShift" default:"16" range:"8 20"`
	// prefixes of the domain's hosts, alike on all nodes: packets between them carry telemetry
	// without an encapsulation
	Plain []netip.Prefix `key:"plain" omit:"zero" style:"flow"`
	// nil: nothing is inserted here
	Source *TelemetrySource `key:"source"`
	// rates of links that are slower than their interfaces say
	Links []TelemetryLink `key:"links" omit:"zero" item:"telemetry link %s" by:"place" change:"whole"`
	// interfaces by which packets leave that metadata is added to
	Transit []string `key:"transit" omit:"zero" style:"flow" is:"place"`
	// nil: nothing is taken out here
	Sink *TelemetrySink `key:"sink"`
}

// TelemetryLink is the link behind an interface.
type TelemetryLink struct {
	// the link's end on this node
	Interface string `key:"interface"`
	// of which utilization is a share
	RateKbps int `key:"rate" as:"rate"`
}

// String names the interface and the rate.
func (l TelemetryLink) String() string { return l.Interface + " " + FormatRate(l.RateKbps) }

// TelemetrySource is where telemetry is inserted into packets that are encapsulated, or plain.
type TelemetrySource struct {
	// by which packets leave
	Interfaces []string `key:"interfaces" style:"flow" is:"place"`
	// the form in which telemetry is inserted
	Encoding TelemetryEncoding `key:"encoding" default:"int"`
	// what nodes write; none: node and queue
	Metadata []TelemetryMetadata `key:"metadata" omit:"zero" style:"flow"`
	// nodes that write, at most, the source counted
	Hops int `key:"hops" default:"8" range:"1 255"`
	// room left free for so many nodes, which write without moving anything
	Slots int `key:"slots" omit:"zero" range:"0 63"`
	// of the packets that no item of the watch list chooses, one in so many; 0: none
	OneIn  int             `key:"oneIn" default:"50" range:"1 4294967295" zero:"for none"`
	Choice TelemetryChoice `key:"choice" default:"chance"`
	// the first that matches decides
	Watch []TelemetryWatch `key:"watch" omit:"zero" item:"telemetry watch %s" by:"place" change:"whole"`
}

// TelemetryWatch says how many of some packets get telemetry.
type TelemetryWatch struct {
	// in lists and metrics
	Name string `key:"name"`
	// name of a service of the node's edge; "": any
	Service string `key:"service" omit:"zero" help:"of this node's edge"`
	// the zero prefix: any
	Source      netip.Prefix `key:"source" as:"any" omit:"zero" help:"prefix of the encapsulated packets"`
	Destination netip.Prefix `key:"destination" as:"any" omit:"zero" help:"prefix of the encapsulated packets"`
	// IP protocol number; 0: any
	Protocol         int       `key:"protocol" as:"protocol" omit:"zero" help:"name or number"`
	SourcePorts      PortRange `key:"sourcePorts" omit:"zero" help:"port or range, like 80-90"`
	DestinationPorts PortRange `key:"destinationPorts" omit:"zero" help:"port or range, like 80-90"`
	// of the packets; -1: any
	DSCP int `key:"dscp" default:"-1" range:"0 63" help:"of the encapsulated packets"`
	// what nodes write into these packets; none: as for all of the source
	Metadata []TelemetryMetadata `key:"metadata" omit:"zero" style:"flow" help:"what nodes write, like node,latency,queue (default: as for the source)"`
	// one packet in so many; 0: none
	OneIn  int             `key:"oneIn" default:"1" range:"1 4294967295" zero:"for none" help:"one packet in so many gets telemetry; 0: none"`
	Choice TelemetryChoice `key:"choice" default:"chance" help:"chance or turn"`
}

// TelemetrySink is where telemetry is taken out of packets, and what is reported.
type TelemetrySink struct {
	// on which packets arrive
	Interfaces []string `key:"interfaces" style:"flow" is:"place"`
	// decapsulating SIDs to which packets with telemetry go
	SIDs []netip.Prefix `key:"sids" style:"flow"`
	// where reports go by UDP
	Collector netip.AddrPort `key:"collector" as:"collector"`
	// where each goes besides, such as to controllers that stand by
	Mirrors []netip.AddrPort `key:"mirrors" as:"collector" omit:"zero" style:"flow"`
	// reasons for reports; none: gap, queue and path
	Report []TelemetryReason `key:"report" omit:"zero" style:"flow"`
	// a flow's pause that is longer counts (tau); 0: none
	Gap time.Duration `key:"gap" default:"10ms" range:"1us 1h" zero:"for none"`
	// and at least so many of its round-trip times, where one is known
	GapRTTs int `key:"gapRTTs" omit:"zero" range:"0 1000"`
	// bytes that a queue on the way has to exceed
	QueueBytes int `key:"queueBytes" default:"65536" range:"0 16777215"`
	// bytes by which the longest queue on the way has to differ from when it last did
	QueueChange int `key:"queueChange" default:"65536" range:"1 16777215"`
	// between two reports of a flow, at least
	FlowInterval time.Duration `key:"flowInterval" default:"100ms" range:"0s 1h"`
	// reports in a second, at most
	Limit int `key:"limit" default:"10000" range:"1 4294967295"`
}

// TelemetryMetadata is something that a node can write into packets.
type TelemetryMetadata string

// TelemetryEncoding is the form in which a source inserts telemetry. Transits and sinks know all.
type TelemetryEncoding string

// The encodings.
const (
	EncodingINT         TelemetryEncoding = "int"          // INT-MD 2.1, behind the outer headers
	EncodingIOAM        TelemetryEncoding = "ioam"         // a trace of RFC 9197 in options
	EncodingPathTracing TelemetryEncoding = "path-tracing" // three octets of a hop, likewise
)

// TelemetryChoice is how one packet in so many is chosen.
type TelemetryChoice string

// TelemetryReason is why the sink reports a packet.
type TelemetryReason string

// The ways of choosing.
const (
	ByChance TelemetryChoice = "chance" // a random number for each packet
	InTurn   TelemetryChoice = "turn"   // exactly each so manieth of a processor
)

// telemetryMetadata are the instructions of INT for each kind of metadata.
var telemetryMetadata = []struct {
	name        TelemetryMetadata
	instruction telemetry.Instructions
}{
	{"node", telemetry.NodeID}, {"interfaces", telemetry.Interfaces},
	{"latency", telemetry.HopLatency}, {"queue", telemetry.Queue},
	{"ingress-time", telemetry.IngressTime}, {"egress-time", telemetry.EgressTime},
	{"wide-interfaces", telemetry.WideInterfaces}, {"utilization", telemetry.Utilization},
}

// Interfaces are those of source, transit and sink, each once.
func (t *Telemetry) Interfaces() []string {
	names := slices.Clone(t.Transit)
	if t.Source != nil {
		names = append(names, t.Source.Interfaces...)
	}
	if t.Sink != nil {
		names = append(names, t.Sink.Interfaces...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MetadataOf is what nodes write into packets of an item of the watch list: what it says, or,
// without any, what the source says. None with Path Tracing, whose nodes are not asked.
func (s *TelemetrySource) MetadataOf(item []TelemetryMetadata) (list []TelemetryMetadata) {
	asked := s.Instructions(item)
	for _, m := range telemetryMetadata {
		if s.Encoding != EncodingPathTracing && asked&m.instruction != 0 {
			list = append(list, m.name)
		}
	}
	return list
}

// Instructions are the metadata as INT asks for them: of an item of the watch list, or, without
// any, those of the source.
func (s *TelemetrySource) Instructions(item []TelemetryMetadata) (asked telemetry.Instructions) {
	if len(item) == 0 {
		item = s.Metadata
	}
	if len(item) == 0 {
		return telemetry.NodeID | telemetry.Queue
	}
	for _, m := range telemetryMetadata {
		if slices.Contains(item, m.name) {
			asked |= m.instruction
		}
	}
	return asked
}

// Reasons for which the sink reports.
const (
	ReportEach        TelemetryReason = "each"
	ReportGap         TelemetryReason = "gap"
	ReportQueue       TelemetryReason = "queue"
	ReportQueueChange TelemetryReason = "queue-change"
	ReportNewFlow     TelemetryReason = "new-flow"
	ReportPath        TelemetryReason = "path"
	ReportEnd         TelemetryReason = "end"
)

// Reports are the reasons for which the sink reports.
func (s *TelemetrySink) Reports() []TelemetryReason {
	if len(s.Report) == 0 {
		return []TelemetryReason{ReportGap, ReportQueue, ReportPath}
	}
	return s.Report
}

// Limits of the data plane: TELEMETRY_CLASSES, of which one is for the rest, and what a source
// inserts.
const (
	maxTelemetryWatch = 15
	maxTelemetryWords = 64 // INT_ROOM_WORDS
	maxTelemetrySIDs  = 1024
)

func (t *Telemetry) faces() []Face { return plainFaces(t.Interfaces(), Face{}) }

func (t *Telemetry) check(c *checker) {
	if t.Source == nil && len(t.Transit) == 0 && t.Sink == nil {
		c.invalid("telemetry", "the node is neither source, transit nor sink",
			`add "source:", "transit: [eth1]" or "sink:"`)
	}
	shaped := lists.Map(t.Links, func(l TelemetryLink) string { return l.Interface })
	if len(shaped) > 0 {
		c.telemetryInterfaces("telemetry.links", shaped)
	}
	if len(t.Transit) > 0 {
		c.telemetryInterfaces("telemetry.transit", t.Transit)
		c.telemetryPasses("telemetry.transit", t.Transit)
	}
	if !slices.Contains([]int{8, 12, 16, 20}, t.TimeShift) {
		c.invalid("telemetry.timeShift", fmt.Sprintf("Path Tracing has no template that shifts "+
			"by %d", t.TimeShift), "write 8, 12, 16 or 20")
	}
	if t.Source != nil {
		c.telemetryPasses("telemetry.source.interfaces", t.Source.Interfaces)
		c.telemetrySource(t.Source)
		c.telemetryEncoding(t)
	}
	sids := 0
	if t.Sink != nil {
		c.telemetrySink(t.Sink)
		sids = len(t.Sink.SIDs)
	}
	c.count("telemetry.plain", "prefixes, with the SIDs of the sink,", sids+len(t.Plain),
		maxTelemetrySIDs)
}

// telemetryPasses checks that packets which leave by an interface pass TC, where the programs are.
func (c *checker) telemetryPasses(where string, names []string) {
	for i, name := range names {
		if owner := c.node.sendsAtXDP(name); owner != "" {
			c.conflict(fmt.Sprintf("%s[%d]", where, i), fmt.Sprintf("programs at XDP send by "+
				"interface %q, past telemetry, which is at TC", name),
				"take it out of "+owner+", so that the kernel sends there", owner)
		}
	}
}

// sendsAtXDP names the list that lets programs at XDP send by an interface; "": none does.
func (n *Node) sendsAtXDP(name string) string {
	has := func(i XDPInterface) bool { return i.Name == name }
	switch {
	case n.Edge != nil && slices.ContainsFunc(n.Edge.Interfaces,
		func(i EdgeInterface) bool { return i.Name == name }):
		return "edge.interfaces"
	case n.Headend != nil && slices.ContainsFunc(n.Headend.Interfaces, has):
		return "headend.interfaces"
	case n.Headend != nil && slices.Contains(n.Headend.Uplinks, name):
		return "headend.uplinks"
	case n.CFLB != nil && n.CFLB.Forwarding == ByXDP && slices.ContainsFunc(n.CFLB.Interfaces, has):
		return "cflb.interfaces"
	}
	return ""
}

func (c *checker) telemetryInterfaces(where string, names []string) {
	c.some(where, len(names), "there is no interface", "add its name, like [eth0]")
	c.deviceNames(where, names, nil)
}

func (c *checker) telemetrySource(s *TelemetrySource) {
	c.telemetryInterfaces("telemetry.source.interfaces", s.Interfaces)
	c.telemetryRoom("telemetry.source", s, nil)
	c.count("telemetry.source.watch", "items", len(s.Watch), maxTelemetryWatch)
	names := unique[string]{}
	for i, w := range s.Watch {
		where := fmt.Sprintf("telemetry.source.watch[%d]", i)
		c.name(join(where, "name"), "watch", w.Name)
		names.once(c, join(where, "name"), w.Name, renameOne, "watch %q is given twice")
		c.telemetryWatch(where, w)
	}
}

func (c *checker) telemetryWatch(where string, w TelemetryWatch) {
	if w.Source.IsValid() && w.Destination.IsValid() &&
		w.Source.Addr().Is4() != w.Destination.Addr().Is4() {
		c.conflict(join(where, "destination"), "source and destination are of two families",
			"write two of one family", join(where, "source"))
	}
	c.telemetryRoom(where, c.node.Telemetry.Source, w.Metadata)
	ports := w.SourcePorts != PortRange{} || w.DestinationPorts != PortRange{}
	if ports && w.Protocol != protocolTCP && w.Protocol != protocolUDP {
		c.invalid(join(where, "protocol"), "ports need a protocol that has them",
			`write "protocol: tcp" or "protocol: udp"`)
	}
	if w.Service == "" {
		return
	}
	if w.Destination.IsValid() || w.DestinationPorts != (PortRange{}) || w.Protocol != 0 {
		c.conflict(join(where, "service"), "a service says destination, protocol and port",
			"delete these, or the service")
	}
	if _, known := c.node.telemetryService(w.Service); !known {
		c.invalid(join(where, "service"), fmt.Sprintf("the edge has no service %q", w.Service),
			"write the name of one, or destination, protocol and destinationPorts instead")
	}
}

// telemetryService finds a service of the node's edge.
func (n *Node) telemetryService(name string) (Endpoint, bool) {
	if n.Edge == nil {
		return Endpoint{}, false
	}
	for _, s := range n.Edge.Services {
		if s.Name == name {
			return s.Endpoint, true
		}
	}
	return Endpoint{}, false
}

// TelemetryWatches is the watch list with services as what they are: destination, protocol, port.
func (n *Node) TelemetryWatches() []TelemetryWatch {
	list := slices.Clone(n.Telemetry.Source.Watch)
	for i, w := range list {
		e, known := n.telemetryService(w.Service)
		if !known {
			continue
		}
		list[i].Destination = netip.PrefixFrom(e.VIP, e.VIP.BitLen())
		if list[i].Protocol = protocolTCP; e.Protocol == UDP {
			list[i].Protocol = protocolUDP
		}
		if e.Port != AnyPort {
			list[i].DestinationPorts = PortRange{First: e.Port, Last: e.Port}
		}
	}
	return list
}

func (c *checker) telemetrySink(s *TelemetrySink) {
	c.telemetryInterfaces("telemetry.sink.interfaces", s.Interfaces)
	c.some("telemetry.sink.sids", len(s.SIDs), "the sink has no SID",
		`add the prefixes of this machine's decapsulating SIDs, like ["fcbb:bb00:1::/48"]`)
	c.count("telemetry.sink.sids", "SIDs", len(s.SIDs), maxTelemetrySIDs)
	c.telemetryReaches(s)
	c.count("telemetry.sink.mirrors", "mirrors", len(s.Mirrors), maxControllers-1)
	for i, to := range s.Mirrors {
		if to == s.Collector || slices.Contains(s.Mirrors[:i], to) {
			c.conflict(fmt.Sprintf("telemetry.sink.mirrors[%d]", i),
				fmt.Sprintf("reports would go to %s twice", to), "delete one of the two")
		}
	}
}

// Rule is the packets of the item as a head-end's rule says them, without a policy.
func (w TelemetryWatch) Rule() SteeringRule {
	return SteeringRule{Source: w.Source, Destination: w.Destination, Protocol: w.Protocol,
		SourcePorts: w.SourcePorts, DestinationPorts: w.DestinationPorts, DSCP: w.DSCP}
}

func (w TelemetryWatch) applies(key string) bool { return key != "dscp" || w.DSCP != AnyDSCP }

// String says which packets are watched, and how many of them.
func (w TelemetryWatch) String() string {
	what := w.Rule().Match()
	if w.Service != "" {
		what += ", service " + w.Service
	}
	if len(w.Metadata) > 0 {
		what += fmt.Sprintf(", of %s", w.Metadata)
	}
	return fmt.Sprintf("%s: %s, 1 in %d by %s", w.Name, what, w.OneIn, w.Choice)
}

// TelemetryWatchChange is what a run-time change says about an item of the watch list. A nil field
// leaves the value as it is, or at its default in a new item.
type TelemetryWatchChange struct {
	Service                       *string
	Source, Destination           *netip.Prefix
	Protocol                      *int
	SourcePorts, DestinationPorts *PortRange
	DSCP                          *int
	Metadata                      *[]TelemetryMetadata
	OneIn                         *int
	Choice                        *TelemetryChoice
}

// AddTelemetryWatch adds an item to the end of a source's watch list.
func AddTelemetryWatch(n *Node, name string, change TelemetryWatchChange) (*Node, error) {
	return n.changeTelemetrySource(func(s *TelemetrySource) error {
		if s.find(name) >= 0 {
			return exists("watch", name)
		}
		w := fresh[TelemetryWatch]()
		w.Name = name
		setAll(&w, change)
		s.Watch = append(s.Watch, w)
		return nil
	})
}

// SetTelemetryWatch changes an item of a source's watch list, which keeps its place.
func SetTelemetryWatch(n *Node, name string, change TelemetryWatchChange) (*Node, error) {
	return n.changeTelemetrySource(func(s *TelemetrySource) error {
		i := s.find(name)
		if i < 0 {
			return Absent("watch", name,
				lists.Map(s.Watch, func(w TelemetryWatch) string { return w.Name }))
		}
		setAll(&s.Watch[i], change)
		return nil
	})
}

func (s *TelemetrySource) find(name string) int {
	return slices.IndexFunc(s.Watch, func(w TelemetryWatch) bool { return w.Name == name })
}

// HasTelemetryWatch reports whether the node's watch list has an item of this name.
func (n *Node) HasTelemetryWatch(name string) bool {
	return n.Telemetry != nil && n.Telemetry.Source != nil && n.Telemetry.Source.find(name) >= 0
}

// DeleteTelemetryWatch deletes an item from a source's watch list.
func DeleteTelemetryWatch(n *Node, name string) (*Node, error) {
	return n.changeTelemetrySource(func(s *TelemetrySource) error {
		return deleteNamed(&s.Watch, "watch", name,
			func(w TelemetryWatch) string { return w.Name })
	})
}

func (n *Node) changeTelemetrySource(change func(*TelemetrySource) error) (*Node, error) {
	if n.Telemetry == nil || n.Telemetry.Source == nil {
		return nil, roleless(n, "telemetry source")
	}
	return n.changed(func(c *Node) error { return change(c.Telemetry.Source) })
}

func registerTelemetry() {
	words := make([]TelemetryMetadata, len(telemetryMetadata))
	for i, m := range telemetryMetadata {
		words[i] = m.name
	}
	registerWords(words...)
	registerWords(ByChance, InTurn)
	registerWords(EncodingINT, EncodingIOAM, EncodingPathTracing)
	registerWords(ReportEach, ReportGap, ReportQueue, ReportQueueChange, ReportNewFlow,
		ReportPath, ReportEnd)
	register("udp", parseUDPPort, FormatPort).document = portDocument
	register("collector", parseCollector, zeroText[netip.AddrPort])
}

func parseUDPPort(s string) (uint16, error) {
	port, err := ParsePort(s)
	if err == nil && port == AnyPort {
		return 0, invalid("telemetry needs one port", "write 1 to 65535")
	}
	return port, err
}

func parseCollector(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{}, invalid(fmt.Sprintf("%q is not an address and port", s),
			`write it like "[2001:db8::9]:32766"`)
	}
	return a, nil
}
