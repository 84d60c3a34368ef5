package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/packet/cflb"
)

// PathSourceConfig says which connections of a cgroup take which paths.
type PathSourceConfig struct {
	IPv4, IPv6 *cflb.Codec // whose field is the source port, or both
	// from which connections are opened; the zero value: connections of the family are left alone
	Source4, Source6 netip.Addr
	Rules            []PathRule // the first that a connection matches decides
	// the source ports that may be used, both included
	PortsFrom, PortsTo uint16
	// OwnNamespace leaves sockets of other network namespaces than this thread's alone.
	OwnNamespace bool
	// Cgroup is the directory that Commit attaches the programs to.
	Cgroup string
}

// PathRule says which connections take a path. The zero value of a condition: any.
type PathRule struct {
	Cgroup                string // directory of the process, or one above it
	User                  *uint32
	Command               string // name of the thread, at most 15 bytes
	Destination           netip.Prefix
	PortsFirst, PortsLast uint16 // of destinations
	Protocol              uint8
	// Path has next hops by the hop limits with which routers receive packets; none: connections
	// are left alone.
	Path []cflb.Hop
}

// PathSource gives connections of a cgroup source ports with which they take paths. Its methods
// are for one goroutine.
type PathSource struct {
	*collection
	config   PathSourceConfig
	programs map[string]*ebpf.Program
}

// PathSourceCounters are sockets that were connected, by what became of them.
type PathSourceCounters struct {
	Steered   uint64 // they take the path of a rule
	NoPort    uint64 // no free port takes the path: they were left alone
	Bound     uint64 // the application had bound them to a port
	Unmatched uint64 // no rule is about them, or one that leaves them alone
}

// Bounds of path rules.
const (
	PathRulesMax   = 16 // PATH_RULES_MAX
	pathHopsMax    = 32 // PATH_HOPS_MAX
	pathCommandMax = 15 // and a zero, as the kernel knows names
)

type pathHop struct {
	HopLimit uint8
	Index    uint8
}

type pathRule struct {
	Cgroup      uint64
	Command     [16]byte
	Destination [2]uint64
	Mask        [2]uint64
	User        uint32
	PortsFirst  uint16
	PortsLast   uint16
	AnyUser     uint8
	Protocol    uint8
	Families    uint8
	Hops        uint8
	Path        [pathHopsMax]pathHop
	Reserved    uint32
}

type pathSettings struct {
	Networks    [cflbFamilies]cflbNetwork
	NetnsCookie uint64
	Source      [2]uint64
	Source4     uint32
	Rules       uint32
	PortsFrom   uint32
	Ports       uint32
	List        [PathRulesMax]pathRule
}

// Families as bits, enum path_family.
const (
	pathIPv4 = 1 << iota
	pathIPv6
)

// settings are how the programs know the configuration.
func (c PathSourceConfig) settings() (s pathSettings, err error) {
	if len(c.Rules) > PathRulesMax {
		return s, fmt.Errorf("%d path rules: at most %d can be used", len(c.Rules), PathRulesMax)
	}
	for i, rule := range c.Rules {
		if s.List[i], err = rule.layout(); err != nil {
			return s, fmt.Errorf("path rule %d: %w", i+1, err)
		}
	}
	if c.OwnNamespace {
		if s.NetnsCookie, err = netnsCookie(); err != nil {
			return s, err
		}
	}
	for i, codec := range []*cflb.Codec{c.IPv4, c.IPv6} {
		if codec != nil {
			s.Networks[i] = cflbNetworkOf(codec)
		}
	}
	if c.Source4.IsValid() {
		address := c.Source4.As4()
		s.Source4 = binary.BigEndian.Uint32(address[:])
	}
	if c.Source6.IsValid() {
		address := c.Source6.As16()
		s.Source = [2]uint64{binary.BigEndian.Uint64(address[:]),
			binary.BigEndian.Uint64(address[8:])}
	}
	s.Rules, s.PortsFrom = uint32(len(c.Rules)), uint32(c.PortsFrom)
	s.Ports = uint32(c.PortsTo) - s.PortsFrom + 1
	return s, nil
}

// layout is the rule as the programs know it.
func (r PathRule) layout() (l pathRule, err error) {
	if len(r.Path) > pathHopsMax {
		return l, fmt.Errorf("%d choices on the path: at most %d can be used", len(r.Path),
			pathHopsMax)
	}
	if len(r.Command) > pathCommandMax {
		return l, fmt.Errorf("command %q: the kernel knows %d bytes of a name", r.Command,
			pathCommandMax)
	}
	if r.Cgroup != "" {
		if l.Cgroup, err = cgroupID(r.Cgroup); err != nil {
			return l, fmt.Errorf("cgroup %s: %w; name a directory of a cgroup2 file system",
				r.Cgroup, err)
		}
	}
	copy(l.Command[:], r.Command)
	l.AnyUser = 1
	if r.User != nil {
		l.User, l.AnyUser = *r.User, 0
	}
	l.PortsFirst, l.PortsLast, l.Protocol = r.PortsFirst, r.PortsLast, r.Protocol
	if l.PortsLast == 0 {
		l.PortsLast = math.MaxUint16
	}
	l.Families = pathIPv4 | pathIPv6
	if r.Destination.IsValid() {
		l.setDestination(r.Destination)
	}
	l.Hops = uint8(len(r.Path))
	for i, hop := range r.Path {
		l.Path[i] = pathHop{hop.HopLimit, uint8(hop.Index)}
	}
	return l, nil
}

func (l *pathRule) setDestination(to netip.Prefix) {
	address, ones := to.Masked().Addr(), to.Bits()
	if address.Is4() {
		four := address.As4()
		l.Families = pathIPv4
		l.Destination[0] = uint64(binary.BigEndian.Uint32(four[:]))
		l.Mask[0] = uint64(^uint32(0) << (32 - ones)) // 0 of a shift by 32
		return
	}
	sixteen := address.As16()
	l.Families = pathIPv6
	for i := range l.Destination {
		l.Destination[i] = binary.BigEndian.Uint64(sixteen[8*i:])
		l.Mask[i] = ^uint64(0) << (64 - min(64, max(0, ones-64*i)))
	}
}

// OpenPathSource loads the programs beside whatever is running. Dir is a directory on the bpf file
// system. Commit attaches them.
func OpenPathSource(dir string, config PathSourceConfig) (*PathSource, error) {
	c, err := newCollection(dir)
	if err != nil {
		return nil, err
	}
	p := &PathSource{collection: c, config: config}
	if err := p.open("path_outcomes"); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *PathSource) open(keep ...string) error {
	settings, err := p.config.settings()
	if err != nil {
		return err
	}
	spec, err := loadPathSource()
	if err != nil {
		return err
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return err
	}
	p.programs, err = p.load(spec, keep...)
	return err
}

// pathSourceHooks are the programs and where they run.
var pathSourceHooks = map[string]ebpf.AttachType{
	"path_connect4": ebpf.AttachCGroupInet4Connect,
	"path_connect6": ebpf.AttachCGroupInet6Connect,
}

// SteerCgroup loads the programs and attaches them to a directory of the cgroup2 file system, as
// long as this process lives. Close detaches them; what is connected stays as it is.
func SteerCgroup(cgroup string, config PathSourceConfig) (*PathSource, error) {
	p := &PathSource{config: config, collection: &collection{maps: map[string]*ebpf.Map{},
		links: map[string]link.Link{}}}
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	for name, hook := range pathSourceHooks {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: hook,
			Program: p.programs[name]})
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("attach %s to cgroup %s: %w", name, cgroup, err)
		}
		p.links[name] = l
	}
	return p, nil
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
func (p *PathSource) Commit() ([]Attachment, error) {
	var places []place
	for _, name := range []string{"path_connect4", "path_connect6"} {
		places = append(places, place{name: name, program: p.programs[name],
			on: p.config.Cgroup, kind: onSockets})
	}
	return p.commit(places)
}

// Counters returns how many sockets were connected.
func (p *PathSource) Counters() (c PathSourceCounters, err error) {
	var failed error
	for i, n := range []*uint64{&c.Steered, &c.NoPort, &c.Bound, &c.Unmatched} {
		*n, err = sumPerCPU(p.maps["path_outcomes"], uint32(i),
			func(total *uint64, v uint64) { *total += v })
		failed = errors.Join(failed, err)
	}
	return c, failed
}

// Drops is empty: no packet is dropped.
func (p *PathSource) Drops() ([]Counter, error) { return nil, nil }

// Outcomes is empty: Counters says what became of sockets.
func (p *PathSource) Outcomes() ([]Counter, error) { return nil, nil }

// ForgetNextHops has nothing to do: no next hops are looked up.
func (p *PathSource) ForgetNextHops() error { return nil }

// Dump reads at most limit entries of a map. Entries of arrays that are all zero are left out.
func (p *PathSource) Dump(name string, limit int) ([]Entry, error) {
	return p.dump(loadPathSource, name, limit)
}

// Close releases the kernel objects. Programs that Commit attached steer on.
func (p *PathSource) Close() { p.close() }
