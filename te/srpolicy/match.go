package srpolicy

import (
	"fmt"
	"net/netip"
)

// Ports is a range of TCP or UDP ports, both ends included. The zero value is all of them.
type Ports struct{ First, Last uint16 }

// Match chooses packets by their IP and transport header. The zero value chooses all. Ports of
// packets that have none, as fragments, are 0; the protocol of an IPv6 fragment is 44.
type Match struct {
	Source, Destination netip.Prefix // the zero prefix: any, of either family
	Protocol            uint8        // 6 TCP, 17 UDP; 0: any
	SourcePorts         Ports
	DestinationPorts    Ports
	DSCP                uint8 // looked at if ByDSCP is set
	ByDSCP              bool
}

const (
	maxDSCP     = 63
	protocolTCP = 6
	protocolUDP = 17
)

// check refuses what can't match anything.
func (m Match) check() error {
	source, destination := m.Source, m.Destination
	if source.IsValid() && destination.IsValid() &&
		source.Addr().Is4() != destination.Addr().Is4() {
		return fmt.Errorf("source %s and destination %s are of two families", source, destination)
	}
	for _, p := range []netip.Prefix{source, destination} {
		if p.IsValid() && p.Masked() != p {
			return fmt.Errorf("prefix %s has bits behind its length; did you mean %s?", p,
				p.Masked())
		}
	}
	if m.DSCP > maxDSCP || m.DSCP != 0 && !m.ByDSCP {
		return fmt.Errorf("DSCP %d: it is 0 to %d, and set together with ByDSCP", m.DSCP, maxDSCP)
	}
	for _, ports := range []Ports{m.SourcePorts, m.DestinationPorts} {
		if ports.Last < ports.First {
			return fmt.Errorf("ports %d to %d: the last is before the first", ports.First,
				ports.Last)
		}
		if ports != (Ports{}) && m.Protocol != protocolTCP && m.Protocol != protocolUDP {
			return fmt.Errorf("ports %d to %d of protocol %d: only TCP (6) and UDP (17) have ports",
				ports.First, ports.Last, m.Protocol)
		}
	}
	return nil
}

// Packet is what rules look at.
type Packet struct {
	Source, Destination         netip.Addr
	Protocol                    uint8
	SourcePort, DestinationPort uint16
	DSCP                        uint8
}

// Matches reports whether the rule chooses the packet.
func (m Match) Matches(p Packet) bool {
	return contains(m.Source, p.Source) && contains(m.Destination, p.Destination) &&
		(m.Protocol == 0 || m.Protocol == p.Protocol) &&
		m.SourcePorts.contain(p.SourcePort) && m.DestinationPorts.contain(p.DestinationPort) &&
		(!m.ByDSCP || m.DSCP == p.DSCP)
}

func contains(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }

func (p Ports) contain(port uint16) bool {
	return p == (Ports{}) || p.First <= port && port <= p.Last
}
