package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/telemetry"
)

// padding is so many octets of it.
func padding(octets int) []byte {
	b := make([]byte, octets)
	if octets > 1 {
		b[0], b[1] = 1, byte(octets-2)
	}
	return b
}

// headersBesideOthers are hop-by-hop headers that Linux takes: with telemetry of several lengths,
// an option of others before it, behind it or both, and all padding in between.
func headersBesideOthers(t *testing.T) (all [][]byte) {
	var options [][]byte
	for words := range 3 {
		trace := telemetry.Trace{Option: telemetry.OptionIOAM, Type: telemetry.TraceNode,
			Namespace: telemetryNamespace, Data: make([]byte, 4*(1+words))}
		ioam, err := trace.AppendBinary(nil)
		must(t, err)
		path, err := make(telemetry.PathTrace, 3*(1+2*words)).AppendBinary(nil)
		must(t, err)
		options = append(options, ioam, path)
	}
	before, behind := []byte{5, 2, 0, 0}, []byte{0x1e, 5, 1, 2, 3, 4, 5}
	for _, option := range options {
		for n := range 3 * 8 * 8 {
			header := []byte{0, 0}
			if n%3 != 1 {
				header = append(header, before...)
			}
			header = append(header, padding(n/3%8)...)
			if option[0] == telemetry.OptionIOAM && len(header)%4 != 0 {
				continue
			}
			header = append(header, option...)
			if n%3 != 0 {
				header = append(append(header, padding(n/24)...), behind...)
			}
			header = append(header, padding(-len(header)&7)...)
			header[1] = byte(len(header)/8 - 1)
			all = append(all, header)
		}
	}
	return all
}

// TestSinkLeavesWhatLinuxTakes sends packets that have other options beside telemetry to a socket,
// which all of them reach without a sink on their way, and with one.
func TestSinkLeavesWhatLinuxTakes(t *testing.T) {
	w := newWorld(t)
	here := netip.MustParseAddr("fd00:5e:1::1")
	program, err := OpenTelemetry(w.dir, TelemetryConfig{Node: telemetryNode, Port: telemetryPort,
		Namespace: telemetryNamespace, SIDs: []netip.Prefix{netip.PrefixFrom(here, 128)},
		Infrastructure: telemetryInside, Sink: []string{"near"}})
	must(t, err)
	t.Cleanup(program.Close)
	socket, err := net.ListenUDP("udp6", &net.UDPAddr{IP: here.AsSlice(), Port: 80})
	must(t, err)
	defer socket.Close()
	wire, headers, sent := openWire(t), headersBesideOthers(t), 0
	packet := packettest.Packet{Src: packettest.EdgeAddr, Dst: here, SrcPort: 7, DstPort: 80}
	for _, where := range []string{"without a sink", "behind the sink"} {
		if where == "behind the sink" {
			_, err := program.Commit()
			must(t, err)
		}
		for _, header := range headers {
			sent++
			content := fmt.Append(nil, sent)
			ip := packet.Of(17, content...).Bytes(t)
			header[0], ip[6] = ip[6], 0
			wire.send(t, benchLink.Frame(t, sized(slices.Concat(ip[:40], header, ip[40:]))))
			must(t, socket.SetReadDeadline(time.Now().Add(wirePatience)))
			octets := make([]byte, 64)
			n, err := socket.Read(octets)
			if err != nil || !bytes.Equal(octets[:n], content) {
				t.Fatalf("%s: of options %x the socket gets %q, %v", where, header, octets[:n], err)
			}
		}
	}
	outcomes, err := program.Outcomes()
	must(t, err)
	if got := outcomes[model.TelemetryRemoved].Packets; got != uint64(len(headers)) {
		t.Errorf("the sink took telemetry out of %d packets, want %d", got, len(headers))
	}
}

// TestSinkKeepsOtherOptions: what a sink leaves of a header are the other options, in their order,
// each where it was but for a multiple of 8 octets.
func TestSinkKeepsOtherOptions(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingIOAM)
	ip := packettest.Packet{Src: packettest.EdgeAddr,
		Dst: netip.MustParseAddr("fcbb:bb00:5::1"), SrcPort: 7, DstPort: 80}.Of(17).Bytes(t)
	for _, header := range headersBesideOthers(t) {
		header[0], ip[6] = 17, 0
		frame := benchLink.Frame(t, sized(slices.Concat(ip[:40], header, ip[40:])))
		_, after, _ := w.run("telemetry_sink", frame)
		rest := after[ethernetHeader+ipv6Header:]
		size := 8 + 8*int(rest[1])
		if got, want := others(rest[:size]), others(header); !slices.Equal(got, want) ||
			!slices.Equal(rest[size:], ip[40:]) ||
			int(binary.BigEndian.Uint16(after[ethernetHeader+4:])) != len(rest) {
			t.Fatalf("of %x the sink leaves %x: %q, want %q", header, rest, got, want)
		}
	}
}

// others are the options of a header that are neither telemetry nor padding, each with its offset
// modulo 8.
func others(header []byte) (all []string) {
	for at := 2; at < len(header); {
		size := 1
		if header[at] != 0 {
			size = 2 + int(header[at+1])
		}
		switch header[at] {
		case 0, 1, telemetry.OptionIOAM, telemetry.OptionPathTracing:
		default:
			all = append(all, fmt.Sprintf("%x at %d", header[at:at+size], at%8))
		}
		at += size
	}
	return all
}
