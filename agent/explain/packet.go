package explain

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/config"
	"sextant/packet/lists"
)

// Framed is a frame to be explained.
type Framed struct {
	What  string
	Frame []byte
}

// Packets are those of the question: given ones, or for a flow the packet that opens a connection
// and one that follows.
func (x *Explaining) Packets(q api.Question) ([]Framed, error) {
	list := lists.Map(q.Frames, func(f api.Frame) Framed { return Framed{"frame", f} })
	if q.Flow == nil {
		return list, nil
	}
	kinds := []string{"opening", "following"}
	if q.Flow.Protocol == config.UDP {
		kinds = []string{"datagram"}
	}
	if x.Made != nil {
		return x.Made(*q.Flow, kinds)
	}
	return x.Frames(*q.Flow, kinds, nil)
}

// Frames makes packets of a flow behind an outer header, if there is one.
func (x *Explaining) Frames(f api.Flow, kinds []string, outer *layers.IPv6) ([]Framed, error) {
	var list []Framed
	for _, kind := range kinds {
		frame, err := x.Frame(f, kind, outer)
		if err != nil {
			return nil, err
		}
		list = append(list, Framed{kind, frame})
	}
	return list, nil
}

// anyHost is the Ethernet source of made-up frames.
var anyHost = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// MadeUpHopLimit is that of made-up packets.
const MadeUpHopLimit = 64

// Frame makes a packet of a flow behind an outer header, if there is one.
func (x *Explaining) Frame(f api.Flow, kind string, outer *layers.IPv6) ([]byte, error) {
	ethernet := &layers.Ethernet{SrcMAC: anyHost, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		EthernetType: layers.EthernetTypeIPv6}
	if device, err := net.InterfaceByIndex(x.At.Index); err == nil &&
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
	protocol := layers.IPProtocol(state.ProtocolNumbers[f.Protocol])
	if source, destination := f.Source.Addr(), f.Destination.Addr(); source.Is4() {
		network = &layers.IPv4{Version: 4, TTL: MadeUpHopLimit, Protocol: protocol,
			SrcIP: source.AsSlice(), DstIP: destination.AsSlice()}
	} else {
		network = &layers.IPv6{
			Version: 6, HopLimit: MadeUpHopLimit, NextHeader: protocol, SrcIP: source.AsSlice(),
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

// OuterTo is the header with which a node of the SR domain sends a packet of a flow to a SID.
func OuterTo(sid netip.Addr, infrastructure []netip.Prefix, f api.Flow) *layers.IPv6 {
	return &layers.IPv6{
		Version: 6, HopLimit: MadeUpHopLimit, NextHeader: InnerProtocol(f), DstIP: sid.AsSlice(),
		SrcIP: infrastructure[0].Addr().AsSlice(),
	}
}

// InnerProtocol is the upper layer of an outer header around a packet of a flow.
func InnerProtocol(f api.Flow) layers.IPProtocol {
	if f.Source.Addr().Is4() {
		return layers.IPProtocolIPv4
	}
	return layers.IPProtocolIPv6
}
