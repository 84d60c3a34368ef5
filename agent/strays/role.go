// Package strays is role strays: it takes strays away beside a router.
package strays

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
)

// Role takes strays away beside a router. A nil Role is a node without it.
type Role struct {
	role.Loaded[*datapath.Strays]
	Config datapath.StraysConfig
}

var _ role.Switchable[*Role] = (*Role)(nil)

func straysConfig(n *config.Node) datapath.StraysConfig {
	c := datapath.StraysConfig{Infrastructure: n.Domain.Infrastructure}
	for _, i := range n.Strays.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.StrayInterface{Name: i.Name,
			Mode: role.AttachModes[i.Mode]})
	}
	for _, v := range n.Strays.VRFs {
		c.VRFs = append(c.VRFs, datapath.StrayVRF{Device: v.VRF, Namespace: v.Namespace,
			SIDs: v.SIDs, Except: v.Except, Backup: v.Backup})
	}
	return c
}

// Room is the node's place for role strays.
type Room struct {
	role.Slot[*Role]
	routesMoved bool // since the router was followed
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// Prepare is role.Room.
func (s *Room) Prepare(next *config.Node) (role.Change, error) {
	return s.ChangeTo(func() (*Role, error) { return s.Build(next) })
}

// Serve is role.Server.
func (s *Room) Serve() {
	role.Every(s.Life, &s.Loop, role.LearnInterval, s.followRouter)
}

// RoutesChanged is role.RouteWatcher.
func (s *Room) RoutesChanged() { s.routesMoved = true }

// Build makes what the configuration wants.
func (s *Room) Build(n *config.Node) (*Role, error) {
	if n.Strays == nil {
		return nil, nil
	}
	next := &Role{Config: straysConfig(n)}
	return next, nil
}

// Load is role.Switchable.
func (s *Role) Load(dir string) (err error) {
	s.Program, err = datapath.OpenStrays(dir, s.Config)
	return err
}

// Count adds what came for each VRF.
func (s *Role) Count(c *api.Counters) (err error) {
	c.VRFs, err = s.vrfTraffic()
	return err
}

// Explain is role.Room.
func (s *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(s.Runs.Attachments, "stray", on); err != nil {
		return err
	}
	program, err := s.Runs.Program.Explainer()
	if err != nil {
		return err
	}
	twin := s.Runs.twin()
	x.Decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return s.Runs.decide(x, program, twin, e, frame)
	}
	x.Made = func(f api.Flow, kinds []string) ([]explain.Framed, error) {
		return s.Runs.toVRFs(x, f, kinds)
	}
	x.Program = program.Explainer
	return nil
}

// Collect adds what came for each VRF.
func (s *Room) Collect(out chan<- prometheus.Metric) {
	for _, v := range s.Counters(out).VRFs {
		metrics.Counter(out, continuingPackets, v.HerePackets, v.VRF, "here")
		metrics.Counter(out, continuingPackets, v.StrayPackets, v.VRF, "stray")
		metrics.Counter(out, continuingPackets, v.ReturnedPackets, v.VRF, "returned")
		metrics.Counter(out, continuingBytes, v.HereBytes, v.VRF, "here")
		metrics.Counter(out, continuingBytes, v.StrayBytes, v.VRF, "stray")
		metrics.Counter(out, continuingBytes, v.ReturnedBytes, v.VRF, "returned")
	}
}

// Account names nothing: no packets are captured.
func (s *Room) Account() role.Accountant { return nil }

// Capture is role.Capturer.
func (s *Room) Capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return s.Runs.capture(bytes, interfaces...)
}

// Same is role.Switchable.
func (s *Role) Same(other *Role) bool { return datapath.Same(s.Config, other.Config) }

// Fill has nothing to do: what a program needs to know, it finds out.
func (s *Role) Fill(*Role) error { return nil }

// Expected are the attachments at which packets for the VRFs arrive, and those on VRF devices that
// are there: these come and go.
func (s *Role) Expected() []datapath.Attachment {
	return slices.DeleteFunc(slices.Clone(s.Attachments), func(at datapath.Attachment) bool {
		_, gone := net.InterfaceByName(at.On)
		return gone != nil && !slices.ContainsFunc(s.Config.Interfaces,
			func(i datapath.StrayInterface) bool { return i.Name == at.On })
	})
}

// followRouter makes the programs know what the router has changed: SIDs, VRFs, devices. Each of
// these changes routes too.
func (s *Room) followRouter() {
	role := s.Runs
	if role == nil || !s.routesMoved && role.Fault == "" {
		return
	}
	s.routesMoved = false
	fault := ""
	if err := role.Program.Follow(); err != nil {
		fault = err.Error()
	}
	if fault == role.Fault {
		return
	}
	if role.Fault = fault; fault != "" {
		s.Log.Warn("strays are left to the kernel until this is mended", "error", fault)
	} else {
		s.Log.Info("the strays of all VRFs are taken away")
	}
	s.Rewarn()
}

// capture says where to look instead of capturing: tcpdump sees all, for these programs neither
// drop nor send in XDP.
func (s *Role) capture(int, ...string) (*datapath.Capture, error) {
	var arrivals, backups []string
	for _, i := range s.Config.Interfaces {
		arrivals = append(arrivals, "-i "+i.Name)
	}
	for _, v := range s.Config.VRFs {
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
func (s *Role) vrfTraffic() (list []api.VRFTraffic, err error) {
	for number, v := range s.Config.VRFs {
		t, err := s.Program.Traffic(number)
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
	continuingPackets = metrics.Description("vrf_packets_total",
		"Packets that continue a TCP connection, by whether the VRF has it (here) or not (stray; "+
			"returned if it was a stray before).",
		"vrf", "connection")
	continuingBytes = metrics.Description("vrf_bytes_total",
		"Bytes of packets that continue a TCP connection, by whether the VRF has it (here) or "+
			"not (stray; returned if a stray before).",
		"vrf", "connection")
)
