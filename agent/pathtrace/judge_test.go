package pathtrace

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func TestLossy(t *testing.T) {
	for _, test := range []struct {
		name  string
		paths []Count
		want  []int
	}{
		{"no path", nil, []int{}},
		{"nothing is lost", []Count{{20, 20}, {20, 20}}, []int{}},
		{"one of four loses half", []Count{{20, 20}, {20, 10}, {20, 20}, {20, 20}}, []int{1}},
		{"two of four lose all", []Count{{20, 0}, {20, 20}, {20, 0}, {20, 20}}, []int{0, 2}},
		{"chance", []Count{{20, 20}, {20, 19}, {20, 20}, {20, 18}}, []int{}},
		{"all alike", []Count{{20, 10}, {20, 11}}, []int{0, 1}},
		{"all but one, beside losses on the way back", []Count{{40, 10}, {40, 12}, {40, 37}},
			[]int{0, 1}},
	} {
		if got := Lossy(test.paths); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestOnset(t *testing.T) {
	for _, test := range []struct {
		name string
		hops []Count
		want int
		sure bool
	}{
		{"no router", nil, -1, false},
		{"nothing is lost", []Count{{16, 16}, {16, 16}, {16, 16}}, -1, false},
		{"the first link", []Count{{16, 0}, {16, 0}, {16, 0}}, 0, true},
		{"the second link loses half", []Count{{24, 24}, {24, 12}, {24, 11}, {24, 13}}, 1, true},
		{"the third router was lucky", []Count{{8, 8}, {8, 8}, {8, 7}, {8, 3}, {8, 3}}, 3, false},
		{"the last link", []Count{{20, 20}, {20, 20}, {20, 19}, {20, 3}}, 3, true},
		{"a router that is silent itself", []Count{{16, 16}, {16, 0}, {16, 16}, {16, 16}}, -1,
			false},
		{"a silent router behind the link", []Count{{16, 16}, {16, 0}, {16, 5}, {16, 6}}, 1, true},
	} {
		if got, sure := Onset(test.hops); got != test.want || sure != test.sure {
			t.Errorf("%s: %d %t, want %d %t", test.name, got, sure, test.want, test.sure)
		}
	}
}

// Routers whose probes are lost by chance alone seldom hide the link in front of them.
func TestOnsetIsRarelyWrong(t *testing.T) {
	random, wrong := rand.New(rand.NewPCG(1, 2)), 0
	const runs, link = 20_000, 2
	for range runs {
		hops := make([]Count, 8)
		for round, sure := 1, false; round <= onsetMost && !sure; round++ {
			for i := range hops {
				hops[i].Sent++
				if i < link || random.IntN(2) == 0 {
					hops[i].Answered++
				}
			}
			var at int
			if at, sure = Onset(hops); round < onsetLeast {
				sure = false
			} else if at != link && (sure || round == onsetMost) {
				wrong++
			}
		}
	}
	if wrong > 4 {
		t.Errorf("%d of %d onsets are wrong", wrong, runs)
	}
}

func TestFollows(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	many := func(of netip.Addr) []netip.Addr {
		return slices.Repeat([]netip.Addr{of}, leastAnswers)
	}
	for _, test := range []struct {
		name           string
		asked          Asked
		follows, known bool
	}{
		{"nobody answers", Asked{}, false, false},
		{"too few answers", Asked{0: many(a)[1:], 1: {b}}, false, false},
		{"another router at once", Asked{0: {a, b}}, false, true},
		{"each index its own", Asked{0: many(a), 1: many(b)}, true, true},
		{"no choice", Asked{0: many(a), 1: many(a)}, true, true},
		{"hashed", Asked{0: append(many(a), b), 1: many(b)}, false, true},
		{"beyond its next hops", Asked{0: many(a), 1: {a, a, b}}, false, true},
	} {
		if follows, known := test.asked.Follows(); follows != test.follows || known != test.known {
			t.Errorf("%s: %t %t, want %t %t", test.name, follows, known, test.follows, test.known)
		}
	}
}
