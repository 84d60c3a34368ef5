package srv6_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/srv6"
)

const (
	ethernetSize  = 14
	ipv6Size      = 40
	routingHeader = 43
	// https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html
	pcapFileHeader   = 24
	pcapRecordHeader = 16
)

// vectors is the file srh.json.
type vectors struct {
	Scapy, Linux, Malformed []struct{ Name, Hex string }
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	var file struct {
		Scapy     []struct{ Name, Hex string } `json:"scapy"`
		Linux     []struct{ Name, Hex string } `json:"linux_6_18"`
		Malformed []struct{ Name, Hex string } `json:"malformed"`
	}
	readJSON(t, "srh.json", &file)
	return vectors(file)
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// parsePacket parses the SRH of an IPv6 packet, and checks that it is written back octet for octet.
func parsePacket(t testing.TB, packet []byte) srv6.SRH {
	t.Helper()
	h, size, err := srv6.ParseSRH(packet[ipv6Size:])
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packet[ipv6Size:ipv6Size+size], again); diff != "" {
		t.Errorf("written back differently (-packet +written):\n%s", diff)
	}
	return h
}

// Packets made by another implementation. The last two before the checksum row hold TLVs of old
// drafts, whose types and lengths today's rules step over.
func TestScapyVectors(t *testing.T) {
	hmacOfDraft := []srv6.TLV{{Type: 5}, {Type: 0x30}, {}, {}, {}, {}, {},
		{Type: 4, Value: make([]byte, 5)}}
	value := func(last byte) []byte { return append(make([]byte, 17), last) }
	want := map[string]srv6.SRH{
		"default - build & dissect": {NextHeader: 17, Segments: addrs("::1")},
		"addresses list - build & dissect": {NextHeader: 17, SegmentsLeft: 2, LastEntry: 2,
			Segments: addrs("::1", "::2", "::3")},
		"TLVs list - build & dissect": {NextHeader: 6, Segments: addrs("::1"),
			TLVs: hmacOfDraft},
		"both lists - build & dissect": {NextHeader: 58, SegmentsLeft: 2, LastEntry: 2,
			Segments: addrs("::1", "::2", "::3"),
			TLVs:     []srv6.TLV{{Type: 1, Value: value(1)}, {Type: 2, Value: value(1)}}},
		"UDP pseudo-header checksum - build & dissect": {NextHeader: 17, SegmentsLeft: 1,
			LastEntry: 1, Segments: addrs("fc13::1337", "fd00::42")},
	}
	for _, row := range readVectors(t).Scapy {
		t.Run(row.Name, func(t *testing.T) {
			if diff := cmp.Diff(want[row.Name], parsePacket(t, fromHex(t, row.Hex)),
				compareOptions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Headers that the kernel wrote; those of a path at its source are also built here.
func TestLinuxVectors(t *testing.T) {
	for _, row := range readVectors(t).Linux {
		t.Run(row.Name, func(t *testing.T) {
			packet := fromHex(t, row.Hex)
			if packet[6] != routingHeader {
				// encap.red of one segment: the kernel leaves the SRH out, and so does
				// NewReducedSRH.
				if _, ok, err := srv6.NewReducedSRH(packet[6], addrs("fcbb:0:3::4")); ok ||
					err != nil {
					t.Errorf("NewReducedSRH of one segment: ok %v, error %v", ok, err)
				}
				return
			}
			h := parsePacket(t, packet)
			if int(h.SegmentsLeft) == len(h.Segments)-1 {
				built, err := srv6.NewSRH(h.NextHeader, reversed(h.Segments))
				if diff := cmp.Diff(h, built, compareOptions); err != nil || diff != "" {
					t.Errorf("built differently: %v\n%s", err, diff)
				}
			}
		})
	}
}

func reversed[T any](list []T) []T {
	result := make([]T, 0, len(list))
	for i := range list {
		result = append(result, list[len(list)-1-i])
	}
	return result
}

// A payload length that ends inside the SRH: the SRH does not fit.
func TestPayloadSmallerThanSRH(t *testing.T) {
	if rows := readVectors(t).Malformed; len(rows) != 1 ||
		rows[0].Name != "payload_length_smaller_than_srh" {
		t.Fatalf("unknown malformed rows: %v", rows)
	}
	h, err := srv6.NewSRH(41, addrs("fc00::1", "fc00::2"))
	if err != nil {
		t.Fatal(err)
	}
	b := roundTrip(t, h)
	if _, _, err := srv6.ParseSRH(b[:30]); !errors.Is(err, srv6.ErrTruncated) {
		t.Errorf("got error %v, want one that is ErrTruncated", err)
	}
}

// An HMAC TLV that the kernel wrote.
func TestLinuxHMAC(t *testing.T) {
	var vector struct {
		SRH   string `json:"srh_captured_from_linux_6_18"`
		KeyID uint32 `json:"key_id"`
		HMAC  string `json:"linux_hmac"`
	}
	readJSON(t, "srh-hmac.json", &vector)
	h := parsePacket(t, append(make([]byte, ipv6Size), fromHex(t, vector.SRH)...))
	if len(h.TLVs) != 1 {
		t.Fatalf("%d TLVs, want 1", len(h.TLVs))
	}
	got, err := srv6.ParseHMAC(h.TLVs[0])
	want := srv6.HMAC{KeyID: vector.KeyID, Digest: fromHex(t, vector.HMAC)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// readCapture returns the octets behind the IPv6 header of the only packet in a capture, up to the
// end of its payload or of what was captured.
func readCapture(t *testing.T, name string) []byte {
	t.Helper()
	capture, err := os.ReadFile(filepath.Join("testdata", "tcpdump", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(capture, []byte{0xd4, 0xc3, 0xb2, 0xa1}) {
		t.Fatal("not a little-endian pcap file")
	}
	record := capture[pcapFileHeader:]
	frame := record[pcapRecordHeader:][:binary.LittleEndian.Uint32(record[8:])]
	packet := frame[ethernetSize:]
	if packet[6] != routingHeader {
		t.Fatalf("next header is %d", packet[6])
	}
	return packet[:min(len(packet), ipv6Size+int(binary.BigEndian.Uint16(packet[4:])))]
}

// Captures of tcpdump's tests say what its expected output says.
func TestTcpdumpCaptures(t *testing.T) {
	tests := map[string]srv6.SRH{
		"ipv6-srh-ext-header": {NextHeader: 41, SegmentsLeft: 1, LastEntry: 1,
			Segments: addrs("a:b:c:3::d6", "a:b:c:2::f1:0")},
		"ipv6-srh-insert-cksum": {NextHeader: 17, SegmentsLeft: 2, LastEntry: 2,
			Segments: addrs("b2::2", "3::d6", "2::f1:0")},
		"ipv6-srh-ipproto-ether": {NextHeader: 143, Segments: addrs("c::2")},
		"ipv6-srh-tlv-hmac": {NextHeader: 59, Segments: addrs("cafe:1::2"), TLVs: []srv6.TLV{
			{Type: srv6.TLVHMAC, DigestLength: true,
				Value: fromHex(t, "80005412ab30"+"0000000000000000"+"aaaaaaaaaaaaaaaa")},
		}},
		"ipv6-srh-tlv-pad1-padn-5": {NextHeader: 59, Segments: addrs("cafe:1::2"), TLVs: []srv6.TLV{
			{Type: srv6.TLVPad1}, {Type: srv6.TLVPadN, Value: make([]byte, 5)},
		}},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, parsePacket(t, readCapture(t, name)),
				compareOptions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The HMAC TLV of that capture has a length octet that counts the digest alone.
func TestTcpdumpHMAC(t *testing.T) {
	h := parsePacket(t, readCapture(t, "ipv6-srh-tlv-hmac"))
	got, err := srv6.ParseHMAC(h.TLVs[0])
	want := srv6.HMAC{ReducedPath: true, KeyID: 0x5412ab30,
		Digest: append(make([]byte, 8), bytes.Repeat([]byte{0xaa}, 8)...), CountsDigest: true}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestTcpdumpTruncatedCapture(t *testing.T) {
	_, _, err := srv6.ParseSRH(readCapture(t, "ipv6-srh-tlv-pad1-padn-5-trunc")[ipv6Size:])
	if !errors.Is(err, srv6.ErrTruncated) {
		t.Errorf("got error %v, want one that is ErrTruncated", err)
	}
}
