package agent

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
)

// straysRole takes strays away beside a router. A nil straysRole is a node without it.
type straysRole struct {
	loaded[*datapath.Strays]
	config datapath.StraysConfig
}

var _ switchable[*straysRole] = (*straysRole)(nil)

func straysConfig(n *config.Node) datapath.StraysConfig {
	c := datapath.StraysConfig{Infrastructure: n.Domain.Infrastructure}
	for _, i := range n.Strays.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.StrayInterface{Name: i.Name,
			Mode: attachModes[i.Mode]})
	}
	for _, v := range n.Strays.VRFs {
		c.VRFs = append(c.VRFs, datapath.StrayVRF{Device: v.VRF, Namespace: v.Namespace,
			SIDs: v.SIDs, Except: v.Except, Backup: v.Backup})
	}
	return c
}

// straysRoom is the node's place for role strays.
type straysRoom struct {
	slot[*straysRole]
	routesMoved bool // since the router was followed
}

func newStraysRoom(p parts) *straysRoom {
	return &straysRoom{slot: slot[*straysRole]{parts: p, name: api.Strays}}
}

func (s *straysRoom) prepare(next *config.Node) (change, error) {
	return s.changeTo(func() (*straysRole, error) { return s.build(next) })
}

func (s *straysRoom) opened()        {}
func (s *straysRoom) end()           {}
func (s *straysRoom) serve()         { every(s.life, &s.loop, learnInterval, s.followRouter) }
func (s *straysRoom) routesChanged() { s.routesMoved = true }

// build makes what the configuration wants.
func (s *straysRoom) build(n *config.Node) (*straysRole, error) {
	if n.Strays == nil {
		return nil, nil
	}
	next := &straysRole{config: straysConfig(n)}
	return next, nil
}

func (s *straysRole) load(dir string, running *straysRole) (err error) {
	if running != nil {
		s.loaded = running.loaded
		return nil
	}
	s.program, err = datapath.OpenStrays(dir, s.config)
	return err
}

// count adds what came for each VRF.
func (s *straysRole) count(c *api.Counters) (err error) {
	c.VRFs, err = s.vrfTraffic()
	return err
}

func (s *straysRoom) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(s.runs.attachments, "stray", on); err != nil {
		return err
	}
	program, err := s.runs.program.Explainer()
	if err != nil {
		return err
	}
	twin := s.runs.twin()
	x.decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return s.runs.decide(x, program, twin, e, frame)
	}
	x.made = func(f api.Flow, kinds []string) ([]framed, error) {
		return s.runs.toVRFs(x, f, kinds)
	}
	x.program = program.Explainer
	return nil
}

// account names nothing: no packets are captured.
func (s *straysRoom) account() accountant { return nil }

func (s *straysRoom) capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return s.runs.capture(bytes, interfaces...)
}

func (s *straysRole) same(other *straysRole) bool { return datapath.Same(s.config, other.config) }

// fill has nothing to do: what a program needs to know, it finds out.
func (s *straysRole) fill(*straysRole) error { return nil }

// expected are the attachments at which packets for the VRFs arrive, and those on VRF devices that
// are there: these come and go.
func (s *straysRole) expected() []datapath.Attachment {
	return slices.DeleteFunc(slices.Clone(s.attachments), func(at datapath.Attachment) bool {
		_, gone := net.InterfaceByName(at.On)
		return gone != nil && !slices.ContainsFunc(s.config.Interfaces,
			func(i datapath.StrayInterface) bool { return i.Name == at.On })
	})
}

// followRouter makes the programs know what the router has changed: SIDs, VRFs, devices. Each of
// these changes routes too.
func (s *straysRoom) followRouter() {
	role := s.runs
	if role == nil || !s.routesMoved && role.fault == "" {
		return
	}
	s.routesMoved = false
	fault := ""
	if err := role.program.Follow(); err != nil {
		fault = err.Error()
	}
	if fault == role.fault {
		return
	}
	if role.fault = fault; fault != "" {
		s.options.Log.Warn("strays are left to the kernel until this is mended", "error", fault)
	} else {
		s.options.Log.Info("the strays of all VRFs are taken away")
	}
	s.rewarn()
}

// capture says where to look instead of capturing: tcpdump sees all, for these programs neither
// drop nor send in XDP.
func (s *straysRole) capture(int, ...string) (*datapath.Capture, error) {
	var arrivals, backups []string
	for _, i := range s.config.Interfaces {
		arrivals = append(arrivals, "-i "+i.Name)
	}
	for _, v := range s.config.VRFs {
		if device := "-i " + v.Backup; !slices.Contains(backups, device) {
			backups = append(backups, device)
		}
	}
	return nil, &api.Error{Code: api.Conflict, Message: fmt.Sprintf("the programs of role strays "+
		"copy no packets, and hide none from tcpdump: "+
		"strays are seen with tcpdump -n %s, all that arrives with %s (without outer headers "+
		"what continues a connection); "+
		"what becomes of a flow says sextant explain SOURCE DESTINATION",
		strings.Join(backups, " or "), strings.Join(arrivals, " or "))}
}

// vrfTraffic is what came for each VRF.
func (s *straysRole) vrfTraffic() (list []api.VRFTraffic, err error) {
	for number, v := range s.config.VRFs {
		t, err := s.program.Traffic(number)
		if err != nil {
			return nil, err
		}
		list = append(list, api.VRFTraffic{
			VRF: v.Name(), Backup: v.Backup, HerePackets: t.Here, HereBytes: t.HereBytes,
			StrayPackets: t.Strays, StrayBytes: t.StrayBytes,
			ReturnedPackets: t.Returned, ReturnedBytes: t.ReturnedBytes,
		})
	}
	return list, nil
}

var (
	continuingPackets = description("vrf_packets_total",
		"Packets that continue a TCP connection, by whether the VRF has it (here) or not (stray; "+
			"returned if it was a stray before).",
		"vrf", "connection")
	continuingBytes = description("vrf_bytes_total",
		"Bytes of packets that continue a TCP connection, by whether the VRF has it (here) or "+
			"not (stray; returned if a stray before).",
		"vrf", "connection")
)

func collectVRFs(out chan<- prometheus.Metric, list []api.VRFTraffic) {
	for _, v := range list {
		counter(out, continuingPackets, v.HerePackets, v.VRF, "here")
		counter(out, continuingPackets, v.StrayPackets, v.VRF, "stray")
		counter(out, continuingPackets, v.ReturnedPackets, v.VRF, "returned")
		counter(out, continuingBytes, v.HereBytes, v.VRF, "here")
		counter(out, continuingBytes, v.StrayBytes, v.VRF, "stray")
		counter(out, continuingBytes, v.ReturnedBytes, v.VRF, "returned")
	}
}
