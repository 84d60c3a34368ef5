package packettest

import (
	"bytes"
	"testing"

	"sextant/packet/quiclb"
)

// ClientID is a connection ID that a client has made up.
var ClientID = []byte{0xe7, 1, 2, 3, 4, 5, 6, 7}

// QUICConfigs are of each cipher, and of lengths with which the halves of a four-pass text share a
// byte or not, and the server ID is in one of them or in both.
func QUICConfigs() []quiclb.Config {
	key := []byte("0123456789abcdef")
	return []quiclb.Config{
		{Rotation: 0, ServerIDLength: 2, NonceLength: 6},
		{Rotation: 1, ServerIDLength: 4, NonceLength: 12, Key: key},
		{Rotation: 2, ServerIDLength: 2, NonceLength: 5, Key: key},
		{Rotation: 3, ServerIDLength: 10, NonceLength: 5, Key: key},
		{Rotation: 4, ServerIDLength: 9, NonceLength: 9, Key: key},
		{Rotation: 6, ServerIDLength: 15, NonceLength: 4, Key: key},
	}
}

// QUICCodec is the codec of a configuration.
func QUICCodec(t testing.TB, c quiclb.Config) *quiclb.Codec {
	t.Helper()
	codec, err := quiclb.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// ServerConnectionID is one that a backend gives out.
func ServerConnectionID(t testing.TB, c quiclb.Config, backend uint16) []byte {
	t.Helper()
	cid, err := QUICCodec(t, c).Encode(c.ServerID(backend), bytes.Repeat([]byte{byte(backend) * 31},
		c.NonceLength))
	if err != nil {
		t.Fatal(err)
	}
	return cid
}

// QUICShort is a packet with a short header (RFC 9000 section 17.3).
func QUICShort(cid []byte) []byte {
	return append(append([]byte{0x43}, cid...), make([]byte, 30)...)
}

// QUICLong is a packet with a long header: first is the first byte, which holds the type (RFC 9000
// section 17.2).
func QUICLong(first byte, version [4]byte, cid []byte) []byte {
	b := append([]byte{first}, version[:]...)
	b = append(append(b, byte(len(cid))), cid...)
	return append(b, make([]byte, 30)...)
}

// QUICPath is a UDP payload to a QUIC service, and how many of the chain of backends are asked for
// it.
type QUICPath struct {
	Name    string
	Payload []byte
	Owner   uint16 // the one backend that it goes to, or 0:
	Opens   bool   // to the current candidates; else to the whole chain
}

// QUICPaths are payloads of all kinds, to a service that knows the backend 0x203 and not 0x204.
func QUICPaths(t testing.TB) []QUICPath {
	t.Helper()
	v1, v2, negotiation, greased := [4]byte{3: 1}, [4]byte{0x6b, 0x33, 0x43, 0xcf}, [4]byte{},
		[4]byte{0x1a, 0x2a, 0x3a, 0x4a}
	paths := []QUICPath{
		{Name: "Initial", Payload: QUICLong(0xc0, v1, ClientID), Opens: true},
		{Name: "Initial of version 2", Payload: QUICLong(0xd0, v2, ClientID), Opens: true},
		{Name: "Retry of version 2", Payload: QUICLong(0xc0, v2, ClientID)},
		{Name: "0-RTT", Payload: QUICLong(0xd0, v1, ClientID)},
		{Name: "Handshake", Payload: QUICLong(0xe0, v1, ClientID)},
		{Name: "an unknown version", Payload: QUICLong(0xff, greased, ClientID), Opens: true},
		{Name: "version negotiation", Payload: QUICLong(0x80, negotiation, ClientID), Opens: true},
		{Name: "Initial without a connection ID", Payload: QUICLong(0xc0, v1, nil), Opens: true},
		{Name: "a version cut off", Payload: QUICLong(0xc0, v1, nil)[:4]},
		{Name: "a version and no more", Payload: QUICLong(0xc0, v1, nil)[:5], Opens: true},
		{Name: "short, of the client", Payload: QUICShort(ClientID)},
		{Name: "short, of a configuration that is not known",
			Payload: QUICShort([]byte{0xa0, 2, 3, 0, 0, 0, 0, 0, 0})},
		{Name: "nothing"},
	}
	for _, c := range QUICConfigs() {
		cid, other := ServerConnectionID(t, c, 0x203), ServerConnectionID(t, c, 0x204)
		name, end := "rotation "+string(rune('0'+c.Rotation))+", ", 1+len(cid)
		paths = append(paths,
			QUICPath{Name: name + "short", Payload: QUICShort(cid), Owner: 0x203},
			QUICPath{Name: name + "to the last byte", Payload: QUICShort(cid)[:end], Owner: 0x203},
			QUICPath{Name: name + "cut off", Payload: QUICShort(cid)[:end-1]},
			QUICPath{Name: name + "of another server", Payload: QUICShort(other)},
			QUICPath{Name: name + "Handshake", Payload: QUICLong(0xe0, v1, cid), Owner: 0x203},
			QUICPath{Name: name + "Initial", Payload: QUICLong(0xc0, v1, cid), Owner: 0x203},
			QUICPath{Name: name + "Initial of another server", Payload: QUICLong(0xc0, v1, other),
				Opens: true},
			QUICPath{Name: name + "a longer connection ID",
				Payload: QUICLong(0xe0, v1, append(bytes.Clone(cid), 0))},
		)
	}
	return paths
}
