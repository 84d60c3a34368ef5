package packettest

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Link is what surrounds an IP packet on the wire.
type Link struct {
	Src, Dst []byte // addresses
	VLANs    []uint16
	Padding  []byte
}

// Frame puts an IP packet on the wire.
func (l Link) Frame(t testing.TB, ip []byte) []byte {
	t.Helper()
	etherType := layers.EthernetTypeIPv4
	if ip[0]>>4 == 6 {
		etherType = layers.EthernetTypeIPv6
	}
	return l.FrameOf(t, etherType, ip)
}

// FrameOf puts anything on the wire. The outer one of two tags is an 802.1ad one.
func (l Link) FrameOf(t testing.TB, etherType layers.EthernetType, payload []byte) []byte {
	t.Helper()
	types := []layers.EthernetType{layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ,
		layers.EthernetTypeDot1Q}
	types = append(types[3-len(l.VLANs):], etherType)
	if len(l.VLANs) == 1 {
		types[0] = layers.EthernetTypeDot1Q
	}
	all := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: l.Src, DstMAC: l.Dst,
		EthernetType: types[0]}}
	for i, vlan := range l.VLANs {
		all = append(all, &layers.Dot1Q{Priority: 5, VLANIdentifier: vlan, Type: types[i+1]})
	}
	all = append(all, gopacket.Payload(payload), gopacket.Payload(l.Padding))
	// gopacket pads short frames; what comes in here is what a driver delivers.
	return serialize(t, all...)[:14+4*len(l.VLANs)+len(payload)+len(l.Padding)]
}

// WantFrame compares whole frames.
func WantFrame(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("frame (-want +got):\n%s", cmp.Diff(hex.Dump(want), hex.Dump(got)))
	}
}
