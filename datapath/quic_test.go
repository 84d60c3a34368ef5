package datapath

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"sextant/datapath/packettest"
	"sextant/packet/quiclb"
)

// TestEdgeQUIC: a connection ID leads to its server, in every cipher; others go along the chain.
// Whole frames are compared.
func TestEdgeQUIC(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	ids := []uint16{11, 12, 13, 14}
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation)
		edge := w.edgeSubject(e, External)
		serveQUIC(t, e, packettest.QUICConfigs())
		serveAll(t, e, 2, ids...)
		must(t, e.SetSID(0x203, packettest.SID(0x203)))
		for _, path := range packettest.QUICPaths(t) {
			want := ids
			switch {
			case path.Owner != 0:
				want = []uint16{path.Owner}
			case path.Opens:
				want = ids[:2]
			}
			w.run(t, name+"/"+path.Name, func(t *testing.T) {
				checkQUIC(t, edge, name, path.Payload,
					want)
			})
		}
	}
}

// tableQUIC are the services of the shared tables that can be QUIC, by index.
var tableQUIC = map[uint32]ServiceKey{2: {VIP: packettest.VIP6, Protocol: 17},
	3: {VIP: packettest.VIP4, Port: 53, Protocol: 17}}

func serveQUIC(t *testing.T, e *Edge, configs []quiclb.Config) {
	t.Helper()
	for index, key := range tableQUIC {
		must(t, e.SetQUIC(index, configs, []uint16{11, 0x203}))
		must(t, e.SetService(key, index, tableBuckets))
	}
}

func checkQUIC(t *testing.T, edge subject, encapsulation string, payload []byte, want []uint16) {
	t.Helper()
	for _, packet := range []packettest.Packet{packettest.Web6("").To(packettest.VIP6, 443),
		packettest.Web4("").To(packettest.VIP4, 53)} {
		packet = packet.Of(17, payload...)
		ip, in := packet.Bytes(t), packettest.FromClient()
		outcome, after := edge.process(t, in.Frame(t, ip))
		if outcome != wayElsewhere.outcome {
			t.Fatalf("%s, want %s", outcome, wayElsewhere.outcome)
		}
		outer := packettest.Encapsulated(t, encapsulation, want, label(packet.Flow()),
			packet.TrafficClass, ip)
		packettest.WantFrame(t, after, wayElsewhere.out(in).Frame(t, outer))
	}
}

// TestEdgeQUICChanges: configurations and backends come and go while the program runs.
func TestEdgeQUICChanges(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	edge := w.edgeSubject(e, External)
	configs := packettest.QUICConfigs()
	serveAll(t, e, 1, 11, 12)
	first, second := packettest.QUICShort(packettest.ServerConnectionID(t, configs[0], 0x203)),
		packettest.QUICShort(packettest.ServerConnectionID(t, configs[3], 0x203))
	check := func(payload []byte, want ...uint16) {
		t.Helper()
		checkQUIC(t, edge, packettest.Carrier, payload, want)
	}
	check(first, 11) // UDP like any other
	serveQUIC(t, e, configs[:1])
	check(first, 0x203)
	check(second, 11, 12)
	serveQUIC(t, e, configs[:4])
	check(first, 0x203)
	check(second, 0x203)
	serveQUIC(t, e, configs[3:4])
	check(first, 11, 12)
	check(second, 0x203)
	changed := configs[3]
	changed.Key = bytes.Repeat([]byte{7}, quiclb.KeyLength)
	serveQUIC(t, e, []quiclb.Config{changed})
	check(second, 11, 12)
	for index, key := range tableQUIC {
		must(t, e.SetQUIC(index, []quiclb.Config{configs[3]}, []uint16{11}))
		must(t, e.SetService(key, index, tableBuckets))
	}
	check(second, 11, 12)
	serveQUIC(t, e, nil)
	check(second, 11)
	if err := e.SetQUIC(2, []quiclb.Config{{Rotation: 7, ServerIDLength: 2, NonceLength: 6}},
		nil); err == nil {
		t.Error("the rotation of connection IDs that name nobody is accepted")
	}
}

// TestAESTables: a block by tables and round keys, as the program does it, is what AES makes of it,
// both ways.
func TestAESTables(t *testing.T) {
	tables, random := newAESTables(), rand.New(rand.NewPCG(1, 0))
	for range 200 {
		var key, text, want [16]byte
		binary.LittleEndian.PutUint64(key[:], random.Uint64())
		binary.LittleEndian.PutUint64(key[8:], random.Uint64())
		binary.LittleEndian.PutUint64(text[:], random.Uint64())
		binary.LittleEndian.PutUint64(text[8:], random.Uint64())
		block, err := aes.NewCipher(key[:])
		must(t, err)
		block.Encrypt(want[:], text[:])
		if got := runAES(tables, encryptionKey(key[:]), text); got != want {
			t.Fatalf("key %x: %x became %x, want %x", key, text, got, want)
		}
		if got := exchanged(runAES(tables, decryptionKey(key[:]), exchanged(want))); got != text {
			t.Fatalf("key %x: %x became %x, want %x", key, want, got, text)
		}
	}
}

// exchanged is a block with its columns 1 and 3 in each other's place.
func exchanged(b [16]byte) [16]byte {
	out := b
	copy(out[4:8], b[12:])
	copy(out[12:], b[4:8])
	return out
}

// runAES is aes_run of bpf/include/aes.h.
func runAES(tables [2]aesTables, key aesKey, b [16]byte) (out [16]byte) {
	table := &tables[key.Direction]
	for i := range b {
		b[i] ^= key.Rounds[0][i]
	}
	for round := 1; round <= aesRounds; round++ {
		for column := range 4 {
			var mixed uint32
			for row := range 4 {
				from := b[4*((column+row)%4)+row]
				if round == aesRounds {
					mixed |= uint32(table.Last[from]) << (8 * row)
				} else {
					mixed ^= table.Mixed[from]<<(8*row) | table.Mixed[from]>>(32-8*row)
				}
			}
			binary.LittleEndian.PutUint32(out[4*column:],
				mixed^binary.LittleEndian.Uint32(key.Rounds[round][4*column:]))
		}
		b = out
	}
	return out
}
