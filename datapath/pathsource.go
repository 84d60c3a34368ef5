package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/packet/cflb"
)

// PathSourceConfig is the path that connections of a cgroup are to take.
type PathSourceConfig struct {
	IPv4, IPv6 *cflb.Codec // whose field is the source port, or both
	// from which connections are opened; the zero value: connections of the family are left alone
	Source4, Source6 netip.Addr
	Path             []cflb.Hop // by the hop limits with which routers receive packets
	// the source ports that may be used, both included
	PortsFrom, PortsTo uint16
}

// PathSource gives connections of a cgroup source ports with which they take a path.
type PathSource struct {
	*collection
	programs map[string]*ebpf.Program
}

// PathSourceCounters are sockets that were connected, by what became of them.
type PathSourceCounters struct {
	Steered uint64 // they take the path
	NoPort  uint64 // no free port takes the path: they were left alone
	Bound   uint64 // the application had bound them to a port
}

const pathHopsMax = 32 // PATH_HOPS_MAX

type pathHop struct {
	HopLimit uint8
	Index    uint8
}

type pathSettings struct {
	Networks  [cflbFamilies]cflbNetwork
	Source    [2]uint64
	Source4   uint32
	Hops      uint32
	Path      [pathHopsMax]pathHop
	PortsFrom uint32
	Ports     uint32
}

// settings are how the programs know the configuration.
func (c PathSourceConfig) settings() (s pathSettings, err error) {
	if len(c.Path) > pathHopsMax {
		return s, fmt.Errorf("%d choices on the path: at most %d can be used", len(c.Path),
			pathHopsMax)
	}
	for i, codec := range []*cflb.Codec{c.IPv4, c.IPv6} {
		s.Networks[i] = cflbNetworkOf(codec)
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
	for i, hop := range c.Path {
		s.Path[i] = pathHop{hop.HopLimit, uint8(hop.Index)}
	}
	s.Hops, s.PortsFrom = uint32(len(c.Path)), uint32(c.PortsFrom)
	s.Ports = uint32(c.PortsTo) - s.PortsFrom + 1
	return s, nil
}

// OpenPathSource loads the programs and attaches them to a directory of the cgroup2 file system.
// Close detaches them; what is connected stays as it is.
func OpenPathSource(cgroup string, config PathSourceConfig) (*PathSource, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	spec, err := loadPathSource()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return nil, err
	}
	p := &PathSource{collection: &collection{maps: map[string]*ebpf.Map{},
		links: map[string]link.Link{}}}
	if p.programs, err = p.load(spec); err != nil {
		return nil, err
	}
	for name, hook := range map[string]ebpf.AttachType{
		"path_connect4": ebpf.AttachCGroupInet4Connect,
		"path_connect6": ebpf.AttachCGroupInet6Connect,
	} {
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

// Counters returns how many sockets were connected.
func (p *PathSource) Counters() (c PathSourceCounters, err error) {
	var failed error
	for i, n := range []*uint64{&c.Steered, &c.NoPort, &c.Bound} {
		*n, err = sumPerCPU(p.maps["path_outcomes"], uint32(i),
			func(total *uint64, v uint64) { *total += v })
		failed = errors.Join(failed, err)
	}
	return c, failed
}

// Close detaches the programs.
func (p *PathSource) Close() { p.close() }
