package cflb

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"strconv"
	"testing"
)

// A vectorNetwork is a network of testdata/vectors.json, which the Python package wrote and also
// reads.
type vectorNetwork struct {
	Fields, Cipher, Key string
	Radix, Length       int
	Modulo              bool
	Cases               []vectorCase
}

type vectorCase struct {
	Path                [][2]int
	Variant, Value      uint64
	Source, Destination string
	Protocol            uint8
	Ports               bool
	SourcePort          uint16 `json:"source_port"`
	DestinationPort     uint16 `json:"destination_port"`
	FlowLabel           uint32 `json:"flow_label"`
	HopLimit            uint8  `json:"hop_limit"`
	Router, Hash        uint32
	Up                  []bool
	Digit               int
	Decoded, Choice     string
	NextHop             int `json:"next_hop"`
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (n vectorNetwork) codec(t testing.TB) *Codec {
	t.Helper()
	fields, err := ParseFields(n.Fields)
	if err != nil {
		t.Fatal(err)
	}
	cipher, err := ParseCipher(n.Cipher)
	if err != nil {
		t.Fatal(err)
	}
	p := Parameters{Fields: fields, Cipher: cipher, Radix: n.Radix, Length: n.Length}
	if n.Modulo {
		p.Range = ModuloRange
	}
	if _, err := hex.Decode(p.Key[:], []byte(n.Key)); err != nil {
		t.Fatal(err)
	}
	return mustNew(t, p)
}

func mustNew(t testing.TB, p Parameters) *Codec {
	t.Helper()
	c, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (v vectorCase) packet() Packet {
	return Packet{
		Src: netip.MustParseAddr(v.Source), Dst: netip.MustParseAddr(v.Destination),
		Protocol: v.Protocol,
		HasPorts: v.Ports, SrcPort: v.SourcePort, DstPort: v.DestinationPort,
		FlowLabel: v.FlowLabel, HopLimit: v.HopLimit,
	}
}

func (v vectorCase) group(t *testing.T, c *Codec) *Group {
	t.Helper()
	weights := make([]uint32, len(v.Up))
	for i, up := range v.Up {
		if up {
			weights[i] = 1
		}
	}
	g, err := c.NewGroup(weights)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The codec agrees with the one that was written in Python, with big integers, from the paper.
func TestVectors(t *testing.T) {
	var file struct{ Networks []vectorNetwork }
	readJSON(t, "testdata/vectors.json", &file)
	cases := 0
	for i, network := range file.Networks {
		c := network.codec(t)
		for j, v := range network.Cases {
			cases++
			if len(v.Path) > 0 {
				var path []Hop
				for _, hop := range v.Path {
					path = append(path, Hop{HopLimit: uint8(hop[0]), Index: hop[1]})
				}
				if value, err := c.Encode(v.packet(), path, v.Variant); err != nil ||
					value != v.Value {
					t.Errorf("network %d, case %d: encoded %d, %v; want %d", i, j, value, err,
						v.Value)
				}
			}
			digit, choice, hash := c.Digit(v.packet(), v.Router)
			if digit != v.Digit || choice.String() != v.Decoded || hash != v.Hash {
				t.Errorf("network %d, case %d: decoded %d, %s, %d; want %d, %s, %d",
					i, j, digit, choice, hash, v.Digit, v.Decoded, v.Hash)
			}
			if hop, how := c.NextHop(v.packet(), v.Router, v.group(t, c)); hop != v.NextHop ||
				how.String() != v.Choice {
				t.Errorf("network %d, case %d: next hop %d, %s; want %d, %s", i, j, hop, how,
					v.NextHop, v.Choice)
			}
		}
	}
	if cases < 500 {
		t.Errorf("%d cases; the file has lost some", cases)
	}
}

// RC5-16 and Skip32 give what their authors and others published.
func TestCipherVectors(t *testing.T) {
	var rows []struct {
		Cipher, Key, Plain, CipherText, Source string
		Rounds                                 int
	}
	readJSON(t, "testdata/ciphers.json", &rows)
	if len(rows) < 20 {
		t.Fatalf("%d vectors; the file has lost some", len(rows))
	}
	for _, row := range rows {
		key, err := hex.DecodeString(row.Key)
		if err != nil {
			t.Fatal(err)
		}
		var cipher permutation = newRC5(key, row.Rounds)
		if row.Cipher == "skip32" {
			cipher = newSkip32([skip32KeyLength]byte(key))
		}
		plain, _ := strconv.ParseUint(row.Plain, 16, 32)
		want, _ := strconv.ParseUint(row.CipherText, 16, 32)
		if got := cipher.encrypt(plain); got != want {
			t.Errorf("%s of %s under %s: %08x, want %s (%s)", row.Cipher, row.Plain, row.Key, got,
				row.CipherText, row.Source)
		}
		if got := cipher.decrypt(want); got != plain {
			t.Errorf("%s back from %s under %s: %08x, want %s", row.Cipher, row.CipherText, row.Key,
				got, row.Plain)
		}
	}
}

// identity stands for a cipher where the paper shows the selector itself.
type identity struct{}

func (identity) encrypt(x uint64) uint64 { return x }
func (identity) decrypt(x uint64) uint64 { return x }

// The paper's example in section 3.2: B = 3, L = 20, an initial TTL of 64, next hop 0 at R1 and 2
// at R4 make p = 18. Equation 3 is left out there, so the hash is undone here.
func TestExampleOfThePaper(t *testing.T) {
	c := mustNew(t, Parameters{Fields: BothPorts, Radix: 3})
	c.cipher = identity{}
	if c.Length() != 20 || c.Position(64) != 4 || c.Position(62) != 2 {
		t.Fatalf("L = %d, positions %d and %d; want 20, 4 and 2", c.Length(), c.Position(64),
			c.Position(62))
	}
	p := Packet{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
		Protocol: 6, HasPorts: true}
	for c.spread(c.uncontrolled(p)) != 0 {
		p.Dst = p.Dst.Next()
	}
	selector, err := c.Encode(p, []Hop{{64, 0}, {62, 2}}, 0)
	if err != nil || selector != 18 {
		t.Fatalf("p = %d, %v; want 18", selector, err)
	}
	p = BothPorts.Set(p, selector)
	for hopLimit, want := range map[uint8]int{64: 0, 62: 2} {
		p.HopLimit = hopLimit
		if digit, choice, _ := c.Digit(p, 1); digit != want || choice != Controlled {
			t.Errorf("hop limit %d: next hop %d, %s; want %d", hopLimit, digit, choice, want)
		}
	}
}

// L for every set of fields, from an independent computation with integers of any size.
func TestLengths(t *testing.T) {
	want := map[Fields][]int{ // for B of 2, 3, 4, 8, 16
		SourcePort: {16, 10, 8, 5, 4}, FlowLabel: {20, 12, 10, 6, 5},
		BothPorts:           {32, 20, 16, 10, 8},
		FlowLabelSourcePort: {36, 22, 18, 12, 9}, FlowLabelBothPorts: {52, 32, 26, 17, 13},
	}
	for fields, lengths := range want {
		for i, radix := range []int{2, 3, 4, 8, 16} {
			if got := LengthMax(fields, radix); got != lengths[i] {
				t.Errorf("%s, radix %d: %d, want %d", fields, radix, got, lengths[i])
			}
		}
	}
}
