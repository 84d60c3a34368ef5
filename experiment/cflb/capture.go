package cflb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sextant/packet/capturefile"
	"sextant/packet/cflb"
)

// readCapture counts the IP packets of a pcap or pcapng file by flow and half second. Packets that
// were cut count as long as their headers are there.
func readCapture(name string) (*traffic, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the capture: %w; give the path of a pcap or pcapng file", err)
	}
	defer f.Close()
	t, err := trafficOf(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the capture %s: %w", name, err)
	}
	return t, nil
}

// captureBinsMost bounds the time that a capture takes: a day.
const captureBinsMost = 24 * 3600 * binsPerSecond

func trafficOf(in *bufio.Reader) (*traffic, error) {
	reader, err := capturefile.Open(in)
	if err != nil {
		return nil, err
	}
	t := &traffic{}
	known := map[cflb.Packet]uint32{}
	counts := map[[2]uint32]uint32{} // by flow and bin
	var begin time.Time
	for n := 1; ; n++ {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", n, err)
		}
		p, ok := headersOf(gopacket.NewPacket(data, reader.LinkType(),
			gopacket.DecodeOptions{Lazy: true, NoCopy: true}))
		if !ok {
			continue
		}
		if begin.IsZero() {
			begin = info.Timestamp
		}
		bin := max(0, info.Timestamp.Sub(begin)/(time.Second/binsPerSecond))
		if bin >= captureBinsMost {
			return nil, fmt.Errorf("packet %d came %v after the first: give a capture of at most "+
				"a day", n, info.Timestamp.Sub(begin))
		}
		flow, seen := known[p]
		if !seen {
			flow = uint32(len(t.flows))
			known[p], t.flows = flow, append(t.flows, p)
		}
		counts[[2]uint32{flow, uint32(bin)}]++
		t.bins = max(t.bins, int(bin)+1)
	}
	for at, packets := range counts {
		t.add(at[0], at[1], packets)
	}
	if t.packets == 0 {
		return nil, errors.New("it has no IP packets")
	}
	return t, nil
}

// headersOf reads what a balancer reads of a packet.
func headersOf(packet gopacket.Packet) (p cflb.Packet, ok bool) {
	fragment := false
	switch ip := packet.NetworkLayer().(type) {
	case *layers.IPv4:
		p.Src, _ = addrOf(ip.SrcIP)
		p.Dst, ok = addrOf(ip.DstIP)
		p.Protocol, p.HopLimit = uint8(ip.Protocol), ip.TTL
		fragment = ip.FragOffset > 0 || ip.Flags&layers.IPv4MoreFragments != 0
	case *layers.IPv6:
		p.Src, _ = addrOf(ip.SrcIP)
		p.Dst, ok = addrOf(ip.DstIP)
		p.Protocol, p.HopLimit, p.FlowLabel = uint8(ip.NextHeader), ip.HopLimit, ip.FlowLabel
	}
	if !ok || fragment {
		return p, ok
	}
	switch l := packet.TransportLayer().(type) {
	case *layers.TCP:
		p.HasPorts, p.SrcPort, p.DstPort = true, uint16(l.SrcPort), uint16(l.DstPort)
	case *layers.UDP:
		p.HasPorts, p.SrcPort, p.DstPort = true, uint16(l.SrcPort), uint16(l.DstPort)
	}
	return p, ok
}
