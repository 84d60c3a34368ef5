package agent

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/srv6"
)

// framed is a frame to be explained.
type framed struct {
	what  string
	frame []byte
}

// packets are those of the question: given ones, or for a flow the packet that opens a connection
// and one that follows.
func (x *explaining) packets(q api.Question) ([]framed, error) {
	var list []framed
	for _, f := range q.Frames {
		list = append(list, framed{"frame", f})
	}
	if q.Flow == nil {
		return list, nil
	}
	if x.merge != nil {
		return x.copiesOf(*q.Flow)
	}
	kinds := []string{"opening", "following"}
	if q.Flow.Protocol == config.UDP {
		kinds = []string{"datagram"}
	}
	if x.strays != nil {
		return x.toVRFs(*q.Flow, kinds)
	}
	for _, kind := range kinds {
		frame, err := x.frameOf(*q.Flow, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, framed{kind, frame})
	}
	return list, nil
}

// anybody is the Ethernet source of made-up frames.
var anybody = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// madeUpHopLimit is that of made-up packets.
const madeUpHopLimit = 64

// frameOf makes a packet of a flow as it reaches this node: plain at an edge; at a host, offered to
// it with one candidate left.
func (x *explaining) frameOf(f api.Flow, kind string) ([]byte, error) {
	if x.host == nil {
		return x.frame(f, kind, nil)
	}
	outer, err := x.outer(f)
	if err != nil {
		return nil, err
	}
	return x.frame(f, kind, outer)
}

// frame makes a packet of a flow behind an outer header, if there is one.
func (x *explaining) frame(f api.Flow, kind string, outer *layers.IPv6) ([]byte, error) {
	ethernet := &layers.Ethernet{SrcMAC: anybody, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		EthernetType: layers.EthernetTypeIPv6}
	if device, err := net.InterfaceByIndex(x.at.Index); err == nil &&
		len(device.HardwareAddr) == 6 {
		ethernet.DstMAC = device.HardwareAddr
	}
	inner := layersOf(f, kind)
	stack := []gopacket.SerializableLayer{ethernet}
	if outer != nil {
		stack = append(stack, outer)
	} else if f.Source.Addr().Is4() {
		ethernet.EthernetType = layers.EthernetTypeIPv4
	}
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, options, append(stack, inner...)...); err != nil {
		return nil, fmt.Errorf("make a packet of the flow %s -> %s: %w", f.Source, f.Destination,
			err)
	}
	return buffer.Bytes(), nil
}

// layersOf are the IP packet of a flow.
func layersOf(f api.Flow, kind string) []gopacket.SerializableLayer {
	var network interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	protocol := layers.IPProtocol(protocolNumbers[f.Protocol])
	if source, destination := f.Source.Addr(), f.Destination.Addr(); source.Is4() {
		network = &layers.IPv4{Version: 4, TTL: madeUpHopLimit, Protocol: protocol,
			SrcIP: source.AsSlice(), DstIP: destination.AsSlice()}
	} else {
		network = &layers.IPv6{
			Version: 6, HopLimit: madeUpHopLimit, NextHeader: protocol, SrcIP: source.AsSlice(),
			DstIP: destination.AsSlice(),
		}
	}
	if f.Protocol == config.UDP {
		udp := &layers.UDP{SrcPort: layers.UDPPort(f.Source.Port()),
			DstPort: layers.UDPPort(f.Destination.Port())}
		_ = udp.SetNetworkLayerForChecksum(network) // IP layers never fail
		return []gopacket.SerializableLayer{network, udp}
	}
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(f.Source.Port()), DstPort: layers.TCPPort(f.Destination.Port()),
		Window: 65535,
		SYN:    kind == "opening", ACK: kind != "opening",
	}
	_ = tcp.SetNetworkLayerForChecksum(network) // IP layers never fail
	return []gopacket.SerializableLayer{network, tcp}
}

// outer is the header with which an edge offers a packet to this host first, and to some other host
// then.
func (x *explaining) outer(f api.Flow) (*layers.IPv6, error) {
	sid, err := x.offeredAt()
	if err != nil {
		return nil, err
	}
	return outerTo(sid, x.host.Infrastructure, f), nil
}

// outerTo is the header with which somebody of the SR domain sends a packet of a flow to a SID.
func outerTo(sid netip.Addr, infrastructure []netip.Prefix, f api.Flow) *layers.IPv6 {
	return &layers.IPv6{
		Version: 6, HopLimit: madeUpHopLimit, NextHeader: innerProtocol(f), DstIP: sid.AsSlice(),
		SrcIP: infrastructure[0].Addr().AsSlice(),
	}
}

// innerProtocol is the upper layer of an outer header around a packet of a flow.
func innerProtocol(f api.Flow) layers.IPProtocol {
	if f.Source.Addr().Is4() {
		return layers.IPProtocolIPv4
	}
	return layers.IPProtocolIPv6
}

// someoneElse is the id of the candidate that is left in made-up offers.
const someoneElse = srv6.MaxGlobalCSID

// offeredAt is the host's first End.OFFER SID, with an argument: another candidate.
func (x *explaining) offeredAt() (netip.Addr, error) {
	for _, s := range x.agent.host.config.SIDs {
		if s.Behavior == srv6.EndOFFER && s.Prefix.Bits() <= 48 && len(x.host.Infrastructure) > 0 {
			sid := s.Prefix.Addr().As16()
			sid[6], sid[7] = byte(someoneElse>>8), byte(someoneElse&0xff)
			return netip.AddrFrom16(sid), nil
		}
	}
	return netip.Addr{}, &api.Error{Code: api.Conflict,
		Message: "this host has no End.OFFER SID to which a flow could be offered; " +
			"give packets instead: sextant explain -r FILE"}
}
