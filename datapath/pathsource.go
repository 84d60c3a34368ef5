package datapath

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sextant/packet/cflb"
)

// PathSourceConfig says which connections of a cgroup take which paths.
type PathSourceConfig struct {
	IPv4, IPv6 *cflb.Codec // nil: sockets of the family are left alone
	// from which connections are opened, where routers read ports; the zero value: sockets of the
	// family are left alone
	Source4, Source6 netip.Addr
	// Interfaces are those by which packets leave that are to have flow labels.
	Interfaces []string
	// Rules are for SetRules, which every loaded PathSource is to be given: the programs are the
	// same for all rules.
	Rules []PathRule // the first that a connection matches decides
	// the source ports that may be used, both included
	PortsFrom, PortsTo uint16
	// OwnNamespace leaves sockets of other network namespaces than this thread's alone.
	OwnNamespace bool
	// Cgroup is the directory that Commit attaches the programs to.
	Cgroup string
}

// PathRule says which connections take a path. The zero value of a condition: any.
type PathRule struct {
	// Cgroup is the directory of the process, or one above it, as it is when SetRules is called:
	// one that is made again is another to the kernel.
	Cgroup                string
	User                  *uint32
	Command               string // name of the thread, at most 15 bytes
	Destination           netip.Prefix
	PortsFirst, PortsLast uint16 // of destinations
	Protocol              uint8
	// Path has next hops by the hop limits with which routers receive packets; none: connections
	// are left alone.
	Path []cflb.Hop
}

// hasLabels says whether IPv6 packets carry the path in flow labels.
func (c PathSourceConfig) hasLabels() bool {
	return c.IPv6 != nil && c.IPv6.Parts().Fields.HasLabel()
}

// PathSource gives connections of a cgroup source ports, or flow labels, with which they take
// paths. Its methods are for one goroutine.
type PathSource struct {
	*collection
	config   PathSourceConfig
	programs map[string]*ebpf.Program
	rules    []pathRule // that SetRules wrote last
	set      bool       // it has
}

// PathSourceCounters are sockets that were connected, and datagrams of others that carry flow
// labels, by what became of them.
type PathSourceCounters struct {
	Steered   uint64 // they take the path of a rule
	NoPort    uint64 // no free port, or no flow label, takes the path: they were left alone
	Bound     uint64 // the application had bound them to a port
	Unmatched uint64 // no rule is about them, or one that leaves them alone
}

// Bounds of path rules.
const (
	PathRulesMax   = 16 // PATH_RULES_MAX
	pathHopsMax    = len(pathRule{}.Path)
	pathCommandMax = 15 // and a zero, as the kernel knows names
)

// pathBank says which rules hold: the number of the first, and how many.
func pathBank(first uint32, rules int) uint64 { return uint64(rules)<<32 | uint64(first) }

// Families as bits, enum path_family.
const (
	pathIPv4 = 1 << iota
	pathIPv6
)

// settings are how the programs know the configuration.
func (c PathSourceConfig) settings() (s pathSettings, err error) {
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
	s.PortsFrom = uint32(c.PortsFrom)
	s.Ports = uint32(c.PortsTo) - s.PortsFrom + 1
	return s, nil
}

// pathRules are how the programs know rules. Absent are the cgroups that are not there: rules that
// name them match nothing.
func pathRules(rules []PathRule) (all []pathRule, absent []string, err error) {
	if len(rules) > PathRulesMax {
		return nil, nil, fmt.Errorf("%d path rules: at most %d can be used", len(rules),
			PathRulesMax)
	}
	for i, rule := range rules {
		l, err := rule.layout()
		if err != nil {
			return nil, nil, fmt.Errorf("path rule %d: %w", i+1, err)
		}
		if l.Cgroup == noCgroup && !slices.Contains(absent, rule.Cgroup) {
			absent = append(absent, rule.Cgroup)
		}
		all = append(all, l)
	}
	return all, absent, nil
}

// noCgroup is a number that no cgroup has.
const noCgroup = math.MaxUint64

// ruleCgroup is the number of a cgroup that a rule names, noCgroup if there is none now.
func ruleCgroup(dir string) (uint64, error) {
	at := dir
	for {
		var system unix.Statfs_t
		err := unix.Statfs(at, &system)
		if errors.Is(err, unix.ENOENT) && at != filepath.Dir(at) {
			at = filepath.Dir(at) // one day, a cgroup may be made in it
			continue
		}
		if err == nil && system.Type != unix.CGROUP2_SUPER_MAGIC {
			err = fmt.Errorf("%s is on another file system", at)
		}
		if err != nil {
			return 0, fmt.Errorf("cgroup %s: %w; name a directory of a cgroup2 file system", dir,
				err)
		}
		break
	}
	id, err := cgroupID(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return noCgroup, nil
	}
	return id, err
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
		if l.Cgroup, err = ruleCgroup(r.Cgroup); err != nil {
			return l, err
		}
	}
	copy(l.Command[:], r.Command)
	l.AnyUser = 1
	if r.User != nil {
		l.User, l.AnyUser = *r.User, 0
	}
	l.PortsFirst, l.PortsLast, l.Protocol = r.PortsFirst, r.PortsLast, r.Protocol
	l.PortsLast = cmp.Or(l.PortsLast, math.MaxUint16)
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

var _ = objectsOf("pathSource", loadPathSource)

// OpenPathSource loads the programs beside whatever is running, without rules. Dir is a directory
// on the bpf file system. Commit attaches them.
func OpenPathSource(dir string, config PathSourceConfig) (*PathSource, error) {
	c, err := newCollection(dir, loadPathSource)
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

// SetRules makes the rules those of the programs, from now on: all change at once, no connection
// meets some from before and some of now. Changed says whether they are others than before; cgroups
// have numbers, so one that was made again is another. Absent are the cgroups that are not there:
// rules that name them match nothing, until SetRules is called again. An error changes nothing.
func (p *PathSource) SetRules(rules []PathRule) (changed bool, absent []string, err error) {
	all, absent, err := pathRules(rules)
	if err != nil || p.set && slices.Equal(all, p.rules) {
		return false, absent, err
	}
	var bank uint64
	if err := p.maps["path_bank"].Lookup(uint32(0), &bank); err != nil {
		return false, nil, fmt.Errorf("read which path rules hold: %w", err)
	}
	next := PathRulesMax - uint32(bank)
	for i, rule := range all {
		if err := p.maps["path_rules"].Put(next+uint32(i), rule); err != nil {
			return false, nil, fmt.Errorf("write path rule %d: %w", i+1, err)
		}
	}
	if err := p.maps["path_bank"].Put(uint32(0), pathBank(next, len(all))); err != nil {
		return false, nil, fmt.Errorf("make path rules hold: %w", err)
	}
	p.rules, p.set = all, true
	return true, absent, nil
}

// pathSourceHooks are the programs at sockets, and where they run.
var pathSourceHooks = map[string]ebpf.AttachType{
	"path_connect4": ebpf.AttachCGroupInet4Connect,
	"path_connect6": ebpf.AttachCGroupInet6Connect,
	"path_sendmsg6": ebpf.AttachCGroupUDP6Sendmsg,
}

// socketPrograms are those of them that the configuration wants: a socket that is not connected has
// no port to choose, but its datagrams carry flow labels.
func (c PathSourceConfig) socketPrograms() []string {
	if c.hasLabels() {
		return []string{"path_connect4", "path_connect6", "path_sendmsg6"}
	}
	return []string{"path_connect4", "path_connect6"}
}

// SteerCgroup loads the programs with the rules of the configuration, and attaches them to a
// directory of the cgroup2 file system, as long as this process lives. Close detaches them; what is
// connected stays as it is.
func SteerCgroup(cgroup string, config PathSourceConfig) (*PathSource, error) {
	p := &PathSource{config: config, collection: &collection{maps: map[string]*ebpf.Map{},
		links: map[string]link.Link{}}}
	err := p.open()
	if err == nil {
		_, _, err = p.SetRules(config.Rules)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	if config.hasLabels() {
		if err := p.labelLeaving(); err != nil {
			p.Close()
			return nil, err
		}
	}
	for _, name := range config.socketPrograms() {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup,
			Attach: pathSourceHooks[name], Program: p.programs[name]})
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("attach %s to cgroup %s: %w", name, cgroup, err)
		}
		p.links[name] = l
	}
	return p, nil
}

// labelLeaving attaches path_label to the interfaces, as long as this process lives.
func (p *PathSource) labelLeaving() error {
	for _, name := range p.config.Interfaces {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("write flow labels at interface %s: no such interface here; ip link "+
				"lists them", name)
		}
		l, err := link.AttachTCX(link.TCXOptions{Program: p.programs["path_label"],
			Interface: device.Index, Attach: leaving.attach})
		if err != nil {
			return fmt.Errorf("attach path_label to interface %s: %w; for a command, flow labels "+
				"need Linux 6.6, for a whole host role pathSource does with less", name, err)
		}
		p.links["path_label "+name] = l
	}
	return nil
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
func (p *PathSource) Commit() ([]Attachment, error) {
	var places []place
	if p.config.hasLabels() {
		for _, name := range p.config.Interfaces {
			places = append(places, place{name: "path_label", program: p.programs["path_label"],
				on: name, kind: onLeaving})
		}
	}
	for _, name := range p.config.socketPrograms() {
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
