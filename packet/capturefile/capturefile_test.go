package capturefile_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"sextant/packet/capturefile"
)

type writer interface {
	WritePacket(info gopacket.CaptureInfo, data []byte) error
}

// written is a file of one packet.
func written(t *testing.T, ng bool) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	var w writer
	var err error
	flush := func() error { return nil }
	if ng {
		var ngWriter *pcapgo.NgWriter
		ngWriter, err = pcapgo.NewNgWriter(&file, layers.LinkTypeRaw)
		w, flush = ngWriter, ngWriter.Flush
	} else {
		plain := pcapgo.NewWriter(&file)
		w, err = plain, plain.WriteFileHeader(100, layers.LinkTypeRaw)
	}
	data := []byte("packet")
	info := gopacket.CaptureInfo{CaptureLength: len(data), Length: len(data)}
	if err := errors.Join(err, w.WritePacket(info, data), flush()); err != nil {
		t.Fatal(err)
	}
	return &file
}

func TestOpen(t *testing.T) {
	for _, ng := range []bool{false, true} {
		r, err := capturefile.Open(bufio.NewReader(written(t, ng)))
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := r.ReadPacketData()
		if err != nil || string(data) != "packet" || r.LinkType() != layers.LinkTypeRaw {
			t.Errorf("pcapng %v: packet %q of link %v (%v)", ng, data, r.LinkType(), err)
		}
		if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
			t.Errorf("pcapng %v: at the end, %v", ng, err)
		}
	}
}

func TestOpenOfOtherFiles(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty", "no capture, but text of some length": "give a pcap or pcapng file",
	} {
		_, err := capturefile.Open(bufio.NewReader(strings.NewReader(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
