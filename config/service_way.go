package config

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"sextant/packet/srv6"
)

// EdgeNetwork is what an edge needs to compute the ways of its services.
type EdgeNetwork struct {
	Network
	// absolute path of the socket of the controller that knows how congested links are; "": none
	Controller string `key:"controller" omit:"zero"`
}

// Way is what is wanted of the way between an edge and the backends of a service.
type Way struct {
	// what is to be least: the IGP's metric, the delay, or the congestion that telemetry tells of
	By WayMetric `key:"by" default:"igp"`
	// what packets must not cross: links like "R1>R2", in either direction, nodes like "R3", and
	// shared-risk groups like "risk 7"
	Avoid []string `key:"avoid" omit:"zero" style:"flow"`
	// paths that share no link, over which flows are spread
	Disjoint int `key:"disjoint" default:"1" range:"1 2" omit:"default"`
	// of a path, at most
	SIDs int `key:"sids" default:"2" range:"1 4"`
}

// WayMetric is what is to be least on the way to a backend.
type WayMetric string

// The metrics of ways.
const (
	ByIGP       WayMetric = "igp"
	ByDelay     WayMetric = "delay"
	ByTelemetry WayMetric = "telemetry"
)

// Risk reads a shared-risk group in the list of what a way avoids; false: it is no such.
func Risk(avoid string) (group uint32, ok bool) {
	text, ok := strings.CutPrefix(avoid, "risk ")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

// mostAvoided bounds the list of what a way avoids.
const mostAvoided = 64

// HasPaths reports whether the service leads packets over SIDs, to some of its backends.
func (s *Service) HasPaths() bool { return s.Way != nil || s.longestPath() > 0 }

// twoCarriers reports whether some service has paths that one address can't hold beside its chains.
func (e *Edge) twoCarriers() bool {
	for i := range e.Services {
		s := &e.Services[i]
		if n := s.longestWay(); n > 0 && n+s.chainSIDs() > srv6.MaxCarrierCSIDs {
			return true
		}
	}
	return false
}

// longestWay is how many SIDs the longest path to a backend of the service can have.
func (s *Service) longestWay() int {
	if s.Way == nil {
		return s.longestPath()
	}
	return max(s.longestPath(), s.Way.SIDs)
}

// chainSIDs is how many SIDs the service's chains have at most.
func (s *Service) chainSIDs() int {
	if s.Policy == PolicyOffer {
		return s.Depth
	}
	return 1
}

func (c *checker) edgeNetwork(e *Edge) {
	n := e.Network
	if n == nil {
		return
	}
	c.network("edge.network", &n.Network)
	if n.Controller != "" && !path.IsAbs(n.Controller) {
		c.invalid("edge.network.controller", fmt.Sprintf("%q is not an absolute path",
			n.Controller), "write that of the socket in the controller's file")
	}
}

// way checks what can be told without the topology.
func (c *checker) way(where string, s Service, e *Edge) {
	w, at := s.Way, join(where, "way")
	switch {
	case w == nil:
		return
	case e.Network == nil:
		c.conflict(at, "the edge knows no topology on which ways are computed",
			`add "network: {topology: FILE, node: NAME}" to the edge`)
	case w.By == ByTelemetry && e.Network.Controller == "":
		c.conflict(join(at, "by"), "no controller is named that knows how congested links are",
			`add "controller: /run/sextant/controller.sock" to edge.network`)
	}
	c.count(join(at, "avoid"), "things to avoid", len(w.Avoid), mostAvoided)
	for i, text := range w.Avoid {
		from, to, link := strings.Cut(text, ">")
		_, risk := Risk(text)
		if text == "" || link && (from == "" || to == "") ||
			strings.HasPrefix(text, "risk ") && !risk {
			c.invalid(fmt.Sprintf("%s.avoid[%d]", at, i), fmt.Sprintf("%q names nothing", text),
				`write a link like "R1>R2", a node like R3, or a shared-risk group like "risk 7"`)
		}
	}
	if chain := s.chainSIDs(); e.Encapsulation != Carrier && w.SIDs <= MaxPathSIDs &&
		w.SIDs+chain > srv6.MaxCarrierCSIDs {
		c.conflict(join(at, "sids"), tooManyBytes(w.SIDs, chain),
			roomMend(w.SIDs, s.Candidates), join(where, "depth"))
	}
}
