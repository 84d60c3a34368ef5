package quiclb_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"sextant/packet/quiclb"
)

// vectorFile holds the vectors of draft-ietf-quic-load-balancers (working copy of 2026-05-29),
// where the draft is misprinted as its row says.
type vectorFile struct {
	Vectors []struct {
		Name     string
		Rotation int `json:"config_rotation"`
		Key      string
		ServerID string `json:"server_id"`
		Nonce    string
		CID      string
	}
	Example struct {
		Key      string
		ServerID string `json:"server_id"`
		Nonce    string `json:"nonce"`
		CID      string
	} `json:"worked_example"`
}

func readVectors(t *testing.T) (v vectorFile) {
	t.Helper()
	data, err := os.ReadFile("testdata/quic-lb.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkVector(t *testing.T, rotation int, key, serverID, nonce, cid string) {
	t.Helper()
	id, n, want := unhex(t, serverID), unhex(t, nonce), unhex(t, cid)
	config := quiclb.Config{Rotation: rotation, ServerIDLength: len(id), NonceLength: len(n)}
	if key != "" {
		config.Key = unhex(t, key)
	}
	codec, err := quiclb.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := codec.Encode(id, n); err != nil || !bytes.Equal(got, want) {
		t.Errorf("encoded as %x, %v; want %x", got, err, want)
	}
	if got, err := codec.Decode(append(want, "and what follows"...)); err != nil ||
		!bytes.Equal(got, id) {
		t.Errorf("decoded as %x, %v; want %x", got, err, id)
	}
	other := append([]byte{want[0] ^ 0x20}, want[1:]...)
	for name, cid := range map[string][]byte{"cut": want[:len(want)-1], "empty": {},
		"of another rotation": other} {
		if _, err := codec.Decode(cid); !errors.Is(err, quiclb.ErrUnroutable) {
			t.Errorf("%s: %v, want %v", name, err, quiclb.ErrUnroutable)
		}
	}
}

func TestVectors(t *testing.T) {
	file := readVectors(t)
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			checkVector(t, v.Rotation, v.Key, v.ServerID, v.Nonce,
				v.CID)
		})
	}
	if len(file.Vectors) != 6 {
		t.Errorf("%d vectors, want 6", len(file.Vectors))
	}
	e := file.Example
	t.Run("worked example", func(t *testing.T) {
		checkVector(t, 0, e.Key, e.ServerID, e.Nonce,
			e.CID)
	})
}

// TestLengths: what was encoded is decoded, for all lengths there are, and differs from its
// plaintext if there is a key.
func TestLengths(t *testing.T) {
	key := []byte("0123456789abcdef")
	for id := 1; id <= quiclb.MaxServerID; id++ {
		for nonce := 4; id+nonce <= 19; nonce++ {
			codec, err := quiclb.New(quiclb.Config{Rotation: id % 7, ServerIDLength: id,
				NonceLength: nonce, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			serverID, n := bytes.Repeat([]byte{0xa5}, id), bytes.Repeat([]byte{0x3c}, nonce)
			cid, err := codec.Encode(serverID, n)
			if err != nil {
				t.Fatal(err)
			}
			if int(cid[0]&0x1f) != id+nonce || bytes.Equal(cid[1:],
				append(bytes.Clone(serverID), n...)) {
				t.Errorf("%d+%d bytes: connection ID %x", id, nonce, cid)
			}
			if got, err := codec.Decode(cid); err != nil || !bytes.Equal(got, serverID) {
				t.Errorf("%d+%d bytes: %x, %v", id, nonce, got, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	good := quiclb.Config{ServerIDLength: 2, NonceLength: 6}
	for name, change := range map[string]func(*quiclb.Config){
		"rotation below":    func(c *quiclb.Config) { c.Rotation = -1 },
		"rotation above":    func(c *quiclb.Config) { c.Rotation = quiclb.Unroutable },
		"no server ID":      func(c *quiclb.Config) { c.ServerIDLength = 0 },
		"server ID of 16":   func(c *quiclb.Config) { c.ServerIDLength, c.NonceLength = 16, 4 },
		"nonce of 3":        func(c *quiclb.Config) { c.NonceLength = 3 },
		"20 bytes":          func(c *quiclb.Config) { c.ServerIDLength = 14 },
		"key of 15 bytes":   func(c *quiclb.Config) { c.Key = make([]byte, 15) },
		"key without bytes": func(c *quiclb.Config) { c.Key = []byte{} },
	} {
		c := good
		change(&c)
		if _, err := quiclb.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	codec, err := quiclb.New(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, lengths := range [][2]int{{1, 6}, {2, 5}, {3, 6}, {2, 7}} {
		if _, err := codec.Encode(make([]byte, lengths[0]), make([]byte, lengths[1])); err == nil {
			t.Errorf("encoded with %d and %d bytes", lengths[0], lengths[1])
		}
	}
}

// FuzzDecode: whatever came from outside is refused, or names a server whose ID leads back to it.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x07, 1, 2, 3, 4, 5, 6, 7}, []byte("0123456789abcdef"), uint8(3), uint8(4))
	f.Add([]byte{0x50, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		[]byte("0123456789abcdef"), uint8(8), uint8(8))
	f.Add([]byte{0x20}, []byte(nil), uint8(1), uint8(18))
	f.Fuzz(func(t *testing.T, cid, key []byte, id, nonce uint8) {
		config := quiclb.Config{ServerIDLength: int(id), NonceLength: int(nonce), Key: key}
		if len(cid) > 0 {
			config.Rotation = int(cid[0] >> 5)
		}
		codec, err := quiclb.New(config)
		if err != nil {
			return
		}
		serverID, err := codec.Decode(cid)
		if err != nil {
			if len(cid) > config.PlaintextLength() {
				t.Errorf("%x is long enough: %v", cid, err)
			}
			return
		}
		if len(serverID) != int(id) {
			t.Errorf("server ID %x has not %d bytes", serverID, id)
		}
		again, err := codec.Encode(serverID, make([]byte, nonce))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := codec.Decode(again); err != nil || !bytes.Equal(got, serverID) {
			t.Errorf("%x became %x, %v", serverID, got, err)
		}
	})
}

// TestBackend: server IDs of backends lead back to them, and others to nobody.
func TestBackend(t *testing.T) {
	for length := 2; length <= quiclb.MaxServerID; length++ {
		serverID := quiclb.Config{ServerIDLength: length}.ServerID(0xa1b2)
		if got, ok := quiclb.Backend(serverID); len(serverID) != length || got != 0xa1b2 || !ok {
			t.Errorf("%x is of backend %x, %v", serverID, got, ok)
		}
		if length == 2 {
			continue
		}
		serverID[length-3] = 1
		if got, ok := quiclb.Backend(serverID); ok {
			t.Errorf("%x is of backend %x, want none", serverID, got)
		}
	}
	if got, ok := quiclb.Backend([]byte{7}); ok {
		t.Errorf("one byte is of backend %x, want none", got)
	}
}
