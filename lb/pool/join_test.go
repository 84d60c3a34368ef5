package pool

import (
	"slices"
	"testing"
)

func TestJoin(t *testing.T) {
	chain := func(candidates int, ids ...uint16) Chain {
		c := chainOf(ids)
		c.Candidates = uint8(candidates)
		return c
	}
	for _, c := range []struct {
		name              string
		now, before, want Chain
	}{
		{"nobody twice", chain(2, 1, 2, 3), chain(2, 2, 1, 4), chain(2, 1, 2, 3, 4)},
		{"candidates of before go before owners of now", chain(2, 1, 2, 3), chain(2, 4, 5, 6),
			chain(2, 1, 2, 4, 5, 3, 6)},
		{"no room for all", chain(2, 1, 2, 3, 4, 5, 6), chain(2, 7, 8, 9),
			chain(2, 1, 2, 7, 8, 3, 4)},
		{"nobody now", chain(0), chain(1, 7, 8), chain(0, 7, 8)},
		{"nobody before", chain(1, 1, 2), chain(0), chain(1, 1, 2)},
	} {
		if got := Join(c.now, c.before); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// What Beside leaves of a chain is in each chain that Join makes of it and a former one.
func FuzzBeside(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6}, []byte{7, 8, 9}, uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, a, b []byte, first, second uint8) {
		now, before := anyChain(a, first), anyChain(b, second)
		beside, joint := Beside([]Chain{now}, int(before.Candidates))[0], Join(now, before)
		for _, id := range beside.ids() {
			if !joint.has(id) {
				t.Errorf("%d of %+v is not in %+v", id, beside, joint)
			}
		}
		room := MaxChain - int(before.Candidates)
		if len(beside.ids()) < min(len(now.ids()), room) || beside.Candidates != now.Candidates {
			t.Errorf("%+v beside %d candidates: %+v", now, before.Candidates, beside)
		}
		if err := beside.check(); err != nil {
			t.Error(err)
		}
	})
}

// A plain list of all who are asked, in order, without what is there already, says the same.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{3, 4, 5, 6, 7}, uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, a, b []byte, first, second uint8) {
		now, before := anyChain(a, first), anyChain(b, second)
		var all, want []uint16
		all = append(all, now.IDs[:now.Candidates]...)
		all = append(all, before.IDs[:before.Candidates]...)
		all = append(all, now.ids()...)
		all = append(all, before.ids()...)
		for _, id := range all {
			if !slices.Contains(want, id) {
				want = append(want, id)
			}
		}
		got := Join(now, before)
		if !slices.Equal(got.ids(), want[:min(len(want), MaxChain)]) ||
			got.Candidates != now.Candidates {
			t.Errorf("%v of %+v and %+v, want %v", got, now, before, want)
		}
		if err := got.check(); err != nil {
			t.Error(err)
		}
	})
}

// anyChain is a chain that the package could have made.
func anyChain(ids []byte, candidates uint8) (c Chain) {
	for _, id := range ids {
		if id != 0 {
			c.push(uint16(id), MaxChain)
		}
	}
	c.Candidates = min(candidates, c.Length)
	return c
}
