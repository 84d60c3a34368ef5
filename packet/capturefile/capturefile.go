// Package capturefile reads files of captured packets: pcap and pcapng.
package capturefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Reader is what both formats have in common.
type Reader interface {
	// ReadPacketData returns the next packet; io.EOF: there is none.
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	// LinkType says what packets begin with.
	LinkType() layers.LinkType
}

// pcapngMagic begins a pcapng file: the type of a section header.
var pcapngMagic = []byte{0x0a, 0x0d, 0x0d, 0x0a}

// Open reads the beginning of a file, and returns what reads its packets.
func Open(in *bufio.Reader) (r Reader, err error) {
	magic, err := in.Peek(len(pcapngMagic))
	if err != nil {
		return nil, errors.New("the file is empty; give a pcap or pcapng file")
	}
	if bytes.Equal(magic, pcapngMagic) {
		r, err = pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
	} else {
		r, err = pcapgo.NewReader(in)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; give a pcap or pcapng file, as tcpdump -w and sextant "+
			"capture -w write them", err)
	}
	return r, nil
}
