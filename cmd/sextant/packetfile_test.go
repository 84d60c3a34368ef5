package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// What is written as pcapng is read again, by us and with its comments by an independent reader.
func TestPacketFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file.pcapng")
	a := &app{env: newWorld(t, fakeNode).env()}
	at := time.Date(2026, 11, 5, 12, 0, 0, 123456789, time.UTC)
	packets := []packet{
		{Time: at, Interface: "eth0", Frame: bytes.Repeat([]byte{1}, 60),
			Comment: "transmit, service web"},
		{Time: at.Add(time.Second), Interface: "eth1", Frame: bytes.Repeat([]byte{2}, 61),
			Length: 61, Comment: "drop no_service"},
		{Time: at, Interface: "eth0", Frame: bytes.Repeat([]byte{3}, 62), Comment: ""},
	}
	must(t, a.writePackets(name, func(w io.Writer) error {
		file, err := newPacketFile(w, "test", "eth0")
		for _, p := range packets {
			err = errors.Join(err, file.write(p))
		}
		return errors.Join(err, file.flush())
	}))
	frames, err := a.readFrames(name, 2)
	must(t, err)
	if len(frames) != 2 || !bytes.Equal(frames[1], packets[1].Frame) {
		t.Errorf("read %d frames", len(frames))
	}
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	reader, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{})
	must(t, err)
	var got []packet
	for range packets {
		data, info, options, err := reader.ReadPacketDataWithOptions()
		must(t, err)
		iface, err := reader.Interface(info.InterfaceIndex)
		must(t, err)
		got = append(got, packet{info.Timestamp.UTC(), iface.Name, data, packets[len(got)].Length,
			strings.Join(options.Comments, "|")})
	}
	if diff := cmp.Diff(packets, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pcapOf writes a pcap file.
func pcapOf(t testing.TB, link layers.LinkType, length int, data ...[]byte) []byte {
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65535, link); err != nil {
		t.Fatal(err)
	}
	for _, d := range data {
		if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(d),
			Length: max(length, len(d))}, d); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

// Packets of links without Ethernet header get one; others are refused, and so are files that are
// none.
func TestFramesOf(t *testing.T) {
	ip4, ip6 := append([]byte{0x45}, make([]byte, 19)...), append([]byte{0x60}, make([]byte, 39)...)
	cooked := append(binary.BigEndian.AppendUint16(make([]byte, 14), 0x86dd), ip6...)
	for _, test := range []struct {
		name string
		file []byte
		want string // length and EtherType, or the error
	}{
		{"Ethernet", pcapOf(t, layers.LinkTypeEthernet, 0, append(make([]byte, 12), 8, 0)),
			"14 0800"},
		{"raw IPv4", pcapOf(t, layers.LinkTypeRaw, 0, ip4), "34 0800"},
		{"raw IPv6", pcapOf(t, layers.LinkTypeRaw, 0, ip6), "54 86dd"},
		{"any", pcapOf(t, layers.LinkTypeLinuxSLL, 0, cooked), "54 86dd"},
		{"empty raw", pcapOf(t, layers.LinkTypeRaw, 0, []byte{}),
			"capture on an Ethernet interface"},
		{"another link", pcapOf(t, layers.LinkTypeIEEE802_11, 0, ip4),
			"capture on an Ethernet interface"},
		{"cut", pcapOf(t, layers.LinkTypeEthernet, 99, append(make([]byte, 12), 8, 0)),
			"was cut to 14 of 99 bytes"},
		{"half a packet", pcapOf(t, layers.LinkTypeEthernet, 0, ip6)[:50], "packet 1"},
		{"nothing", nil, "the file is empty"},
		{"text", []byte("node: edge1\n"), "give a pcap or pcapng file"},
		{"half a section", []byte{0x0a, 0x0d, 0x0d, 0x0a, 1}, "give a pcap or pcapng file"},
	} {
		frames, err := framesOf(bytes.NewReader(test.file), 10)
		got := fmt.Sprint(err)
		if err == nil && len(frames) > 0 {
			got = fmt.Sprintf("%d %x", len(frames[0]), []byte(frames[0][12:14]))
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// FuzzFramesOf looks for a file that brings the reader down, or frames that are no frames.
func FuzzFramesOf(f *testing.F) {
	f.Add(pcapOf(f, layers.LinkTypeEthernet, 0, make([]byte, 60)))
	f.Add(pcapOf(f, layers.LinkTypeLinuxSLL, 0, make([]byte, 60)))
	f.Add([]byte{0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a})
	f.Fuzz(func(t *testing.T, file []byte) {
		frames, err := framesOf(bytes.NewReader(file), 100)
		if err == nil && len(frames) > 100 {
			t.Errorf("%d frames, %v", len(frames), err)
		}
	})
}

// What capture writes to a file or pipe can be explained.
func TestCaptureWrites(t *testing.T) {
	w := newWorld(t, fakeNode)
	name := filepath.Join(t.TempDir(), "file.pcapng")
	text := w.run("capture", "--count", "2", "-w", name)
	if !strings.Contains(text, "2 packets captured, 3 lost") || !strings.HasSuffix(text,
		"[exit 0]\n") {
		t.Error(text)
	}
	if text := w.run("explain", "-r", name, "-o", "name"); !strings.Contains(text,
		"transmit\ndrop\n") {
		t.Error(text)
	}
	leaving := filepath.Join(t.TempDir(), "leaving.pcapng")
	if text := w.run("explain", "-r", name, "-w", leaving, "-q"); !strings.HasSuffix(text,
		"[exit 0]\n") {
		t.Error(text)
	}
	if text := w.run("explain", "-r", leaving); strings.Count(text, "transmit") != 1 {
		t.Errorf("of two packets, one leaves:\n%s", text)
	}
	w.terminal = true
	if text := w.run("capture", "-w", "-"); !strings.Contains(text, "would garble the terminal") {
		t.Error(text)
	}
}
