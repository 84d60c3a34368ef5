// Package explain explains packets: the loaded program decides, a model names what it decided by.
package explain

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Explaining is a question being answered: the program's twin decides, and the model of the role
// names what it decided by.
type Explaining struct {
	Role    api.Role
	At      datapath.Attachment // where packets arrive
	Program *datapath.Explainer
	// Decide gives a frame to the program, and names what it met.
	Decide func(*api.Explanation, []byte) (datapath.Explained, error)
	// Made makes packets of a flow as they come to the role; nil: plain ones.
	Made func(f api.Flow, kinds []string) ([]Framed, error)
}

// Arrival chooses the interface: the one that is named, else the first that faces clients, else the
// first.
func Arrival(attachments []datapath.Attachment, program, name string) (datapath.Attachment, error) {
	var first *datapath.Attachment
	for i, at := range attachments {
		switch {
		case at.Program != program || name != "" && at.On != name:
		case name != "" || at.Side != datapath.Internal:
			return at, nil
		case first == nil:
			first = &attachments[i]
		}
	}
	if first == nil {
		return datapath.Attachment{}, &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"the %s runs on no interface %q; see the names with: sextant status", program, name)}
	}
	return *first, nil
}

// Packet gives one frame to the program and to the model.
func (x *Explaining) Packet(frame []byte) (api.Explanation, error) {
	e := api.Explanation{Role: x.Role, Interface: x.At.On, Program: x.Program.Tag(),
		Bytes: len(frame), Telemetry: api.TelemetryOf(frame)}
	got, err := x.Decide(&e, frame)
	if err != nil {
		return e, err
	}
	e.Verdict, e.Outcome, e.Reason = got.Verdict.String(), got.Outcome, got.Reason
	x.leaves(&e, got)
	e.Why = Why(&e)
	return e, nil
}

// FlowOf is nil for what is neither TCP nor UDP.
func FlowOf(t flow.Tuple) *api.Flow {
	for protocol, number := range state.ProtocolNumbers {
		if number == t.Protocol && t.Src.IsValid() {
			return &api.Flow{
				Source: netip.AddrPortFrom(t.Src, t.SrcPort), Destination: netip.AddrPortFrom(t.Dst,
					t.DstPort), Protocol: protocol,
			}
		}
	}
	return nil
}

// leaves tells how the frame is after processing, and where it goes.
func (x *Explaining) leaves(e *api.Explanation, got datapath.Explained) {
	if got.Verdict == model.Drop || got.Verdict == model.Pass {
		return
	}
	if len(e.Copies) > 1 {
		return // each has its own
	}
	e.Frame = hex.EncodeToString(got.Frame)
	if !got.Taken {
		e.Path = segmentsOf(got.Frame)
	}
	if got.Verdict == model.HandToKernel || len(got.Frame) < EthernetHeader {
		return
	}
	e.NextHop = NextHopOf(got)
}

// NextHopOf reads where a frame goes.
func NextHopOf(got datapath.Explained) *api.NextHop {
	hop := &api.NextHop{Destination: net.HardwareAddr(got.Frame[:6]).String(),
		Source: net.HardwareAddr(got.Frame[6:12]).String()}
	if device, err := net.InterfaceByIndex(int(got.Interface)); err == nil {
		hop.Interface = device.Name
	}
	return hop
}

// Lengths in bytes, and offsets in an IPv6 header.
const (
	EthernetHeader  = 14
	ipv6Header      = 40
	ipv6Destination = 24
	ipv6Next        = 6
	routingHeader   = 43 // protocol number
)

// isVLAN reports whether an EtherType announces a VLAN tag.
func isVLAN(etherType uint16) bool { return etherType == 0x8100 || etherType == 0x88a8 }

// segmentsOf reads what a frame's IPv6 packet visits: its destination, then the segments left of
// its SRH.
func segmentsOf(frame []byte) []netip.Addr {
	at := EthernetHeader
	for tags := 0; tags < 2 && len(frame) > at+4 &&
		isVLAN(binary.BigEndian.Uint16(frame[at-2:])); tags++ {
		at += 4
	}
	if len(frame) < at+ipv6Header || frame[at]>>4 != 6 {
		return nil
	}
	ip := frame[at:]
	path := []netip.Addr{netip.AddrFrom16([16]byte(ip[ipv6Destination:ipv6Header]))}
	if ip[ipv6Next] != routingHeader {
		return path
	}
	header, _, err := srv6.ParseSRH(ip[ipv6Header:])
	for left := int(header.SegmentsLeft) - 1; err == nil && left >= 0 &&
		left < len(header.Segments); left-- {
		path = append(path, header.Segments[left])
	}
	return path
}

// ModelKey is how the model knows a service.
func ModelKey(k datapath.ServiceKey) model.ServiceKey {
	return model.ServiceKey{Addr: k.VIP, Port: k.Port, Protocol: k.Protocol}
}
