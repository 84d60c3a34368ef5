package consistenthash_test

import (
	"math/rand/v2"
	"testing"

	"sextant/lb/consistenthash"
)

// TestRowsAreTheRanking: rows have the words of those who come first in a ranking that is kept, and
// else what all rows have.
func TestRowsAreTheRanking(t *testing.T) {
	consistenthash.EachWay(t, func(t *testing.T) {
		for _, members := range []int{0, 1, 2, 3, 5, 6, 7, 8, 10, 12, 13, 31, 32, 33, 100} {
			list := equalMembers(members)
			compareRows(t, list)
			if members > 1 {
				list[members/2].Weight++
				compareRows(t, list)
			}
		}
	})
}

func compareRows(t *testing.T, members []consistenthash.Member) {
	t.Helper()
	const slots = 50 * consistenthash.RowSlots
	kept := rank(t, slots, 7, members)
	computed, err := consistenthash.Compute(7, members)
	if err != nil {
		t.Fatal(err)
	}
	word := func(id uint16) uint16 { return ^(id * 257) }
	random := rand.New(rand.NewPCG(20, uint64(len(members))))
	for best := range consistenthash.RowPlaces + 2 {
		var rest, want consistenthash.Row
		for i := range rest {
			rest[i] = uint16(random.Uint32())
		}
		rows := computed.Rows(best, word, rest)
		for first := 0; first < slots; first += consistenthash.RowSlots {
			var got [consistenthash.RowSlots]consistenthash.Row
			rows.Write(first, &got)
			for i := range got {
				want = rest
				for place, id := range kept.First(first + i) {
					if place < min(best, consistenthash.RowPlaces) {
						want[place] = word(id)
					}
				}
				if got[i] != want {
					t.Fatalf("slot %d of %d members, the best %d: %x, want %x", first+i,
						len(members), best, got[i], want)
				}
			}
		}
	}
}

// TestCloseRows: draws that are too close to decide are found in eight rows at once as in one slot,
// and such rows are right, too.
func TestCloseRows(t *testing.T) {
	consistenthash.EachWay(t, closeRows)
}

func closeRows(t *testing.T) {
	if consistenthash.OneByOne() {
		return
	}
	var rows [consistenthash.RowSlots]consistenthash.Row
	for _, members := range []int{1, 7, 12} {
		computed, err := consistenthash.Compute(7, equalMembers(members))
		if err != nil {
			t.Fatal(err)
		}
		found := uint64(0)
		for first := 0; first < 8_000_000; first += consistenthash.RowSlots {
			alone, atOnce := computed.CloseRows(first, &rows)
			if alone != atOnce {
				t.Fatalf("slots from %d on of %d members: close %x, at once %x", first, members,
					alone, atOnce)
			}
			if found |= alone; alone == 0 {
				continue
			}
			computed.Rows(consistenthash.RowPlaces, func(id uint16) uint16 { return id },
				consistenthash.Row{}).Write(first, &rows)
			for i, row := range rows {
				var space [consistenthash.Depth]uint16
				for place, id := range computed.First(first+i, &space) {
					if place < consistenthash.RowPlaces && row[place] != id {
						t.Fatalf("slot %d of %d members: row %v, in order %v", first+i, members,
							row, space)
					}
				}
			}
		}
		if members >= 12 && found == 0 {
			t.Errorf("no draws of %d members are close: nothing is shown", members)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	c, err := consistenthash.Compute(1, equalMembers(10))
	if err != nil {
		b.Fatal(err)
	}
	rows := c.Rows(6, func(id uint16) uint16 { return id }, consistenthash.Row{})
	var written [consistenthash.RowSlots]consistenthash.Row
	slot := 0
	for b.Loop() {
		rows.Write(slot, &written)
		slot += consistenthash.RowSlots
	}
}
