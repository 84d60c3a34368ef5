package consistenthash

// hit is a slot in which a key's number is high enough for a place among the best.
type hit struct {
	slot int
	draw uint64
}

// scan yields the slots, of so many, in which the number of a key is at least least, in ascending
// order. It looks at four slots at once: they depend on nothing of one another, and one branch
// serves all of them, as few have a number that is high enough.
func scan(seed, key, least uint64, slots int, yield func(hit)) {
	slot := 0
	for ; slot+4 <= slots; slot += 4 {
		a, b := drawOf(seed, slot, key), drawOf(seed, slot+1, key)
		c, d := drawOf(seed, slot+2, key), drawOf(seed, slot+3, key)
		if max(max(a, b), max(c, d)) < least {
			continue
		}
		for i, draw := range [...]uint64{a, b, c, d} {
			if draw >= least {
				yield(hit{slot + i, draw})
			}
		}
	}
	for ; slot < slots; slot++ {
		if draw := drawOf(seed, slot, key); draw >= least {
			yield(hit{slot, draw})
		}
	}
}
