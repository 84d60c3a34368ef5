package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sextant/packet/cflb"
)

// PathSource is the role of a host whose connections take paths through a network with controllable
// load balancing: when a socket is connected, it gets a source port that takes the path, or its
// packets get such a flow label.
type PathSource struct {
	// absolute path of a file with the network's key
	KeyFile string `key:"keyFile"`
	// what KeyFile holds; nil as long as it has not been read
	Key CFLBKey `secret:"key"`
	// nil: connections of the family are left alone
	IPv4 *Selector `key:"ipv4" title:"pathSource ipv4"`
	IPv6 *Selector `key:"ipv6" title:"pathSource ipv6"`
	// from which connections are opened, one of each IP version whose fields are ports alone
	Addresses []netip.Addr `key:"addresses" omit:"zero" style:"flow"`
	// by which packets leave that get flow labels
	Interfaces []string `key:"interfaces" omit:"zero" style:"flow" is:"place"`
	// the source ports that may be used
	Ports PortRange `key:"ports" default:"16384-65535"`
	// the first that a connection matches decides
	Rules []PathRule `key:"rules" item:"path rule %s" by:"place" change:"whole"`
}

// PathRule says which connections take a path.
type PathRule struct {
	// in lists and metrics
	Name string `key:"name"`
	// directory of the process's cgroup2, or one above it; "": any
	Cgroup string `key:"cgroup" omit:"zero"`
	// number of the user; -1: any
	User int `key:"user" default:"-1" range:"0 4294967294"`
	// name of the thread, as ps -L shows it; "": any
	Command string `key:"command" omit:"zero"`
	// the zero prefix: any
	Destination netip.Prefix `key:"destination" as:"any" omit:"zero"`
	// tcp or udp; 0: both
	Protocol         int       `key:"protocol" as:"protocol" omit:"zero"`
	DestinationPorts PortRange `key:"destinationPorts" omit:"zero"`
	Via              Via       `key:"via"`
	// hop limit, or time to live, with which packets come to the first router
	HopLimit int `key:"hopLimit" default:"64" range:"1 255"`
}

// AnyUser as the user of a path rule stands for all.
const AnyUser = -1

// Via says which next hop routers take, one after the other: "1,-,0", "-" for one that has no
// choice. LeaveAlone says that none is asked for.
type Via string

// LeaveAlone is the way of connections that get no path.
const LeaveAlone Via = "any"

const (
	pathRulesMax   = 16 // datapath.PathRulesMax
	pathHopsMax    = 32
	pathCommandMax = 15
)

// ParseVia reads a way through routers.
func ParseVia(s string) (Via, error) {
	if v := Via(s); v == LeaveAlone {
		return v, nil
	}
	choices := 0
	for word := range strings.SplitSeq(s, ",") {
		if word == "-" {
			continue
		}
		if _, err := strconv.ParseUint(word, 10, 8); err != nil {
			return "", invalid(fmt.Sprintf("%q is no way through routers", s),
				"write the index of "+
					`a next hop for each router, like "1,0", or - where there is no choice; or any`)
		}
		choices++
	}
	if choices == 0 {
		return "", invalid(fmt.Sprintf("no router of %q has a choice", s), "write any, if the "+
			"connections are to get no path")
	}
	return Via(s), nil
}

// Hops are the choices by the hop limits with which routers receive packets, the first with
// hopLimit.
func (v Via) Hops(hopLimit int) (path []cflb.Hop) {
	if v == LeaveAlone || v == "" {
		return nil
	}
	for i, word := range strings.Split(string(v), ",") {
		if index, err := strconv.ParseUint(word, 10, 8); err == nil {
			path = append(path, cflb.Hop{HopLimit: uint8(hopLimit - i), Index: int(index)})
		}
	}
	return path
}

// Codec prepares what encodes the paths of a family; nil: its connections are left alone.
func (p *PathSource) Codec(ipv6 bool) (*cflb.Codec, error) {
	s := p.IPv4
	if ipv6 {
		s = p.IPv6
	}
	if s == nil {
		return nil, nil
	}
	return s.codec(p.Key)
}

// Address is the one of an IP version from which connections are opened; the zero value: there is
// none.
func (p *PathSource) Address(ipv6 bool) (none netip.Addr) {
	for _, a := range p.Addresses {
		if a.Is6() == ipv6 {
			return a
		}
	}
	return none
}

func (r PathRule) applies(key string) bool { return key != "user" || r.User != AnyUser }

func (p *PathSource) check(c *checker) {
	c.directory("pathSource.keyFile", p.KeyFile)
	if p.IPv4 == nil && p.IPv6 == nil {
		c.invalid("pathSource", "no family is steered", `add "ipv4: {fields: source-port}"`)
	}
	for ipv6, s := range map[bool]*Selector{false: p.IPv4, true: p.IPv6} {
		if s == nil {
			continue
		}
		where := map[bool]string{false: "pathSource.ipv4", true: "pathSource.ipv6"}[ipv6]
		c.selector(where, s)
		switch labels := s.hasLabel(); {
		case labels && !ipv6:
			c.invalid(where+".fields", "IPv4 packets have no flow label",
				"write source-port or ports, at all sources and routers of the network")
		case labels && len(p.Interfaces) == 0:
			c.invalid("pathSource.interfaces", "there is none whose packets get flow labels",
				"name those by which packets leave: ip link lists them")
		case !labels && !p.Address(ipv6).IsValid():
			c.invalid("pathSource.addresses", "there is none of the IP version of "+where,
				"add the address of this machine from which its connections are opened")
		}
	}
	for i, name := range p.Interfaces {
		c.interfaceName(fmt.Sprintf("pathSource.interfaces[%d]", i), name)
	}
	if len(p.Addresses) > 2 || len(p.Addresses) == 2 &&
		p.Addresses[0].Is4() == p.Addresses[1].Is4() {
		c.invalid("pathSource.addresses", "there are several of one IP version", "leave one")
	}
	c.count("pathSource.rules", "path rules", len(p.Rules), pathRulesMax)
	names := unique[string]{}
	for i, r := range p.Rules {
		c.pathRule(fmt.Sprintf("pathSource.rules[%d]", i), p, r, names)
	}
}

func (c *checker) pathRule(where string, p *PathSource, r PathRule, names unique[string]) {
	c.name(join(where, "name"), "path rule", r.Name)
	names.once(c, join(where, "name"), r.Name, "give one another name",
		"path rule %q is there twice")
	if r.Cgroup != "" {
		c.directory(join(where, "cgroup"), r.Cgroup)
	}
	if len(r.Command) > pathCommandMax {
		c.invalid(join(where, "command"), fmt.Sprintf("command %q has more than %d bytes",
			r.Command, pathCommandMax), "write what ps -L -o comm shows: the kernel knows so many")
	}
	if r.Protocol != 0 && r.Protocol != protocolTCP && r.Protocol != protocolUDP {
		c.invalid(join(where, "protocol"), "only sockets of TCP and UDP have ports",
			"write tcp or udp, or leave it out")
	}
	c.via(join(where, "via"), p, r)
}

// via checks that selectors of the families that the rule is about can hold its path.
func (c *checker) via(where string, p *PathSource, r PathRule) {
	routers := strings.Count(string(r.Via), ",") + 1
	if routers > min(r.HopLimit, pathHopsMax) {
		c.invalid(where, fmt.Sprintf("%d routers, and packets live for %d; at most %d can be named",
			routers, r.HopLimit, pathHopsMax), "name those on the path")
		return
	}
	for ipv6, s := range map[bool]*Selector{false: p.IPv4, true: p.IPv6} {
		if s == nil || r.Destination.IsValid() && r.Destination.Addr().Is6() != ipv6 {
			continue
		}
		codec, err := s.codec(nil)
		if err != nil || r.Via == LeaveAlone {
			continue // selector tells the error
		}
		any := netip.IPv6Unspecified()
		packet := cflb.Packet{Src: any, Dst: any, Protocol: protocolTCP, HasPorts: true}
		if _, err := codec.Encode(packet, r.Via.Hops(r.HopLimit), 0); err != nil {
			c.invalid(where, fmt.Sprintf("no selector holds %s: %v", r.Via, err),
				"name next hops below the radix, of routers that differ in position")
		}
	}
}
