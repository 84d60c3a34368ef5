package linkstate_test

import (
	"bytes"
	"encoding/hex"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/routing/linkstate/linkstatetest"
)

// updates are routes as BGP messages in a capture.
func updates(t *testing.T, n linkstatetest.Network) []byte {
	t.Helper()
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	sequence := uint32(1)
	for _, route := range n.Routes {
		message, err := bgp.NewBGPUpdateMessage(nil, route.Attrs, nil).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP,
			SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{192, 0, 2, 2}}
		tcp := &layers.TCP{SrcPort: 40000, DstPort: 179, Seq: sequence, ACK: true, PSH: true,
			Window: 65535}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		ethernet := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1},
			DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
		buffer := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true,
			ComputeChecksums: true}, ethernet, ip, tcp,
			gopacket.Payload(message)); err != nil {
			t.Fatal(err)
		}
		frame := buffer.Bytes()
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(frame), Length: len(frame)},
			frame); err != nil {
			t.Fatal(err)
		}
		sequence += uint32(len(message))
	}
	return file.Bytes()
}

// What GoBGP writes and we read is BGP-LS to an independent reader, too: Wireshark finds the names,
// flags, metrics, delays, bandwidths and risks in the same messages, and nothing malformed. Its
// version 4.0 does not know the parts that are SRv6's; those are compared octet by octet with what
// RFC 9514 draws in sections 4.1, 6, 6.1 and 7.1.
func TestWiresharkReadsTheSame(t *testing.T) {
	var n linkstatetest.Network
	n.Node(1, "R1", "fcbb:bb00:1::")
	n.Node(2, "R2", "fcbb:bb00:2::")
	n.Flags(2, bgp.LS_PROTOCOL_ISIS_L2, bgp.LsNodeFlags{Overload: true})
	n.Link(1, 2, linkstatetest.Link{Number: 1, Metric: 4711, Delay: 1234, Kbps: 8_000_000,
		Risks: []uint32{77}, EndX: "fcbb:bb00:1:e001::"})
	capture := updates(t, n)
	cmd := exec.Command("tshark", "-r", "-", "-V")
	cmd.Stdin = bytes.NewReader(capture)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v; install the Debian package tshark", err)
	}
	text := string(out)
	for _, want := range []string{
		"Node name: R1", "Node name: R2", "IGP Metric: 0x001267 (4711)", "Delay: 1234",
		"Maximum link bandwidth: 8000.00 Mbps", "Overload Bit: Set",
		"Shared Risk Link Group Value: 0x0000004d (77)", "Link-State NLRI Link NLRI",
		"Link-State NLRI Node NLRI",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("Wireshark does not find %q", want)
		}
	}
	if strings.Contains(text, "Malformed") {
		t.Error("Wireshark finds a malformed packet")
	}
	for what, octets := range map[string]string{
		"SRv6 SID Information TLV": "0206 0010 fcbb bb00 0002 0000 0000 0000 0000 0000",
		"Endpoint Behavior TLV":    "04e2 0004 0001 00 00",
		"End.X SID TLV": "0452 0016 0005 00 00 00 00 fcbb bb00 0001 e001 0000 0000 " +
			"0000 0000",
		"SRv6 SID NLRI, type 6": "4004 47 04 c0000201 00 0006",
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(octets, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(capture, want) {
			t.Errorf("%s is not there as RFC 9514 has it: %s", what, octets)
		}
	}
}
