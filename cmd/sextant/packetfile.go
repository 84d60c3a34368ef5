package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"sextant/agent/api"
	"sextant/packet/capturefile"
)

// packet is one of a capture file.
type packet struct {
	Time      time.Time
	Interface string
	Frame     []byte
	Length    int // of the frame on the wire; 0: all of it is here
	Comment   string
}

// readFrames reads at most limit frames of a pcap or pcapng file.
func (a *app) readFrames(name string, limit int) ([]api.Frame, error) {
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read packets from %s: %w; give the path of a pcap or pcapng "+
				"file", name, withoutPath(err))
		}
		defer f.Close()
		in = f
	} else {
		name = "standard input"
	}
	frames, err := framesOf(in, limit)
	if err != nil {
		return nil, fmt.Errorf("read packets from %s: %w", name, err)
	}
	return frames, nil
}

// framesOf reads frames with an Ethernet header; packets without one get one.
func framesOf(in io.Reader, limit int) ([]api.Frame, error) {
	reader, err := capturefile.Open(bufio.NewReader(in))
	if err != nil {
		return nil, err
	}
	var frames []api.Frame
	for len(frames) < limit {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", len(frames)+1, err)
		}
		if info.CaptureLength < info.Length {
			return nil, fmt.Errorf("packet %d was cut to %d of %d bytes; capture whole packets "+
				"(tcpdump -s 0)", len(frames)+1,
				info.CaptureLength, info.Length)
		}
		frame, err := ethernetFrame(reader.LinkType(), data)
		if err != nil {
			return nil, err
		}
		frames = append(frames, frame)
	}
	return frames, nil
}

// ethernetFrame gives packets of other links an Ethernet header.
func ethernetFrame(link layers.LinkType, data []byte) (api.Frame, error) {
	// bytes of the header of Linux's "any" interface; the protocol is the last two
	const cooked = 16
	header := make([]byte, 12, 14+len(data))
	header[0], header[6] = 2, 2 // locally administered addresses
	switch {
	case link == layers.LinkTypeEthernet:
		return bytes.Clone(data), nil
	case link == layers.LinkTypeLinuxSLL && len(data) >= cooked:
		return append(header, data[cooked-2:]...), nil
	case link == layers.LinkTypeRaw && len(data) > 0 && data[0]>>4 == 6:
		return append(binary.BigEndian.AppendUint16(header, uint16(layers.EthernetTypeIPv6)),
			data...), nil
	case link == layers.LinkTypeRaw && len(data) > 0:
		return append(binary.BigEndian.AppendUint16(header, uint16(layers.EthernetTypeIPv4)),
			data...), nil
	}
	return nil, fmt.Errorf("packets of link type %s can't be read; capture on an Ethernet "+
		"interface", link)
}

// writePackets opens a file for writing, or standard output for "-".
func (a *app) writePackets(name string, write func(io.Writer) error) error {
	if name == "-" {
		if a.terminal {
			return usageErrorf("packets would garble the terminal; write them to a file, or into " +
				"a pipe")
		}
		return write(a.stdout)
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write packets to %s: %w", name, withoutPath(err))
	}
	return errors.Join(write(f), f.Close())
}

// packetFile writes pcapng, with a comment at each packet.
type packetFile struct {
	writer     *pcapgo.NgWriter
	interfaces map[string]int
}

// newPacketFile begins a file with one interface; packets bring further ones.
func newPacketFile(w io.Writer, application, iface string) (*packetFile, error) {
	options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: application +
		" " + version}}
	writer, err := pcapgo.NewNgWriterInterface(w, ngInterface(iface), options)
	return &packetFile{writer: writer, interfaces: map[string]int{iface: 0}}, err
}

func ngInterface(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
}

func (f *packetFile) write(p packet) error {
	index, known := f.interfaces[p.Interface]
	if !known {
		var err error
		if index, err = f.writer.AddInterface(ngInterface(p.Interface)); err != nil {
			return err
		}
		f.interfaces[p.Interface] = index
	}
	info := gopacket.CaptureInfo{
		Timestamp: p.Time, CaptureLength: len(p.Frame), Length: max(p.Length, len(p.Frame)),
		InterfaceIndex: index,
	}
	return f.writer.WritePacketWithOptions(info, p.Frame,
		pcapgo.NgPacketOptions{Comments: []string{p.Comment}})
}

func (f *packetFile) flush() error { return f.writer.Flush() }
