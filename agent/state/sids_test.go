package state

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"sextant/config"
	"sextant/packet/srv6"
)

func testBlock(t *testing.T) srv6.Block {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// outside is one of many SIDs outside of the block.
func outside(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
}

// inBlock is the compressed SID of an id.
func inBlock(id uint16) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfc, 0xbb, 0xbb, 0x00, byte(id >> 8), byte(id)})
}

// SIDs outside of the block get ids that no compressed SID can have, and when these are used up,
// those that no compressed SID has here; all 65,535 in the end.
func TestSIDsNumber(t *testing.T) {
	var s SIDs
	block := testBlock(t)
	number := func(sid netip.Addr) uint16 {
		t.Helper()
		id, err := s.Number(block, sid)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if id := number(inBlock(7)); id != 7 {
		t.Errorf("a compressed SID has the id %#x", id)
	}
	number(inBlock(0xdffe))
	for i := range 8192 {
		if id := number(outside(i)); id != 0xe000+uint16(i) {
			t.Fatalf("SID %d has the id %#x", i, id)
		}
	}
	if s.Own() != nil {
		t.Error("ids that no compressed SID can have are told to be like some")
	}
	if first, second := number(outside(8192)), number(outside(8193)); first != 0xdfff ||
		second != 0xdffd {
		t.Errorf("two more have the ids %#x and %#x", first, second)
	}
	if id := number(outside(5)); id != 0xe005 {
		t.Errorf("a SID that is known has the id %#x", id)
	}
	own := s.Own()
	for id, want := range map[uint16]bool{0xdfff: true, 0xdffe: false, 0xdffd: true, 0xe000: false,
		7: false} {
		if own(id) != want {
			t.Errorf("id %#x is the node's own: %v, want %v", id, own(id), want)
		}
	}
	if _, err := s.Number(block, inBlock(0xdfff)); !errors.Is(err, config.ErrConflict) {
		t.Errorf("a compressed SID whose id another has: %v", err)
	}
	s.Prune(block, []netip.Addr{inBlock(0xdfff)}, func() map[netip.Addr]bool {
		return map[netip.Addr]bool{outside(5): true, inBlock(7): true, inBlock(0xdffe): true}
	})
	if id := number(inBlock(0xdfff)); id != 0xdfff || s.Len() != 1 || number(outside(5)) != 0xe005 {
		t.Errorf("after that was forgotten: %#x, %d ids", id, s.Len())
	}
	for i := range 65535 - 3 { // 7, 0xdffe and 0xdfff are compressed SIDs
		number(outside(i))
	}
	if _, err := s.Number(block, outside(70000)); !errors.Is(err, config.ErrConflict) {
		t.Errorf("SID 65,533: %v, want a conflict, which is of that service alone", err)
	}
}

// SIDs come and go: those that are used keep their ids, and no two have one, as a plain map says.
func TestSIDsComeAndGo(t *testing.T) {
	block := testBlock(t)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s SIDs
		used := map[netip.Addr]bool{}
		ids := map[netip.Addr]uint16{}
		for step := range 60 {
			var wanted []netip.Addr
			for range 1 + random.IntN(2000) {
				sid := outside(random.IntN(200_000))
				if random.IntN(8) == 0 {
					sid = inBlock(uint16(1 + random.IntN(300)))
				}
				wanted = append(wanted, sid)
			}
			for sid := range used {
				if random.IntN(6) == 0 {
					delete(used, sid)
				}
			}
			s.Prune(block, wanted, func() map[netip.Addr]bool {
				all := maps.Clone(used)
				for _, sid := range wanted {
					all[sid] = true
				}
				maps.DeleteFunc(ids, func(sid netip.Addr, _ uint16) bool { return !all[sid] })
				return all
			})
			for _, sid := range wanted {
				id, err := s.Number(block, sid)
				if err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
				if had, ok := ids[sid]; ok && had != id {
					t.Fatalf("seed %d, step %d: %s has id %#x after %#x", seed, step, sid, id, had)
				}
				ids[sid], used[sid] = id, true
				if behind := s.Behind(block, id); behind != sid {
					t.Fatalf("behind %#x of %s is %s", id, sid, behind)
				}
			}
			owners := map[uint16]netip.Addr{}
			for sid, id := range ids {
				if other, taken := owners[id]; taken && used[sid] && used[other] {
					t.Fatalf("seed %d, step %d: %s and %s have id %#x", seed, step, sid, other, id)
				}
				owners[id] = sid
			}
		}
		text, err := json.Marshal(s)
		var read SIDs
		if err != nil || json.Unmarshal(text, &read) != nil || !maps.Equal(read.All(), s.All()) {
			t.Errorf("seed %d: %d ids are other ones after writing and reading", seed, s.Len())
		}
	}
}
