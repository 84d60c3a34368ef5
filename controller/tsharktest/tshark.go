// Package tsharktest dissects packets with Wireshark's tshark, which shares no code with this
// program.
package tsharktest

import (
	"bytes"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// UDP puts a payload into Ethernet, IPv6 and UDP with that destination port.
func UDP(t testing.TB, port uint16, payload []byte) []byte {
	t.Helper()
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolUDP, HopLimit: 64,
		SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8::2")}
	udp := &layers.UDP{SrcPort: 50000, DstPort: layers.UDPPort(port)}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	ethernet := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1},
		DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv6}
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true,
		ComputeChecksums: true}, ethernet, ip, udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// Read returns what tshark prints about frames, told so by arguments.
func Read(t testing.TB, frames [][]byte, arguments ...string) string {
	t.Helper()
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	err := w.WriteFileHeader(65536, layers.LinkTypeEthernet)
	for _, frame := range frames {
		if err == nil {
			err = w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(frame),
				Length: len(frame)}, frame)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tshark", append([]string{"-n", "-r", "-"}, arguments...)...)
	cmd.Stdin = &file
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark %s: %v: %s; install the Debian package tshark",
			strings.Join(arguments, " "), err, complaint.String())
	}
	return string(out)
}
