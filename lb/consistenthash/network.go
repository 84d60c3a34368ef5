package consistenthash

// Networks of comparators put draws in order, the highest first, without a branch that a processor
// would have to guess. They have the fewest comparators that are known for as many draws (Knuth,
// The Art of Computer Programming, volume 3, section 5.3.4).

// sortSix orders the first six.
func sortSix(d *[Depth]uint64) {
	d0, d1, d2, d3, d4, d5 := d[0], d[1], d[2], d[3], d[4], d[5]
	d0, d5 = max(d0, d5), min(d0, d5)
	d1, d3 = max(d1, d3), min(d1, d3)
	d2, d4 = max(d2, d4), min(d2, d4)
	d1, d2 = max(d1, d2), min(d1, d2)
	d3, d4 = max(d3, d4), min(d3, d4)
	d0, d3 = max(d0, d3), min(d0, d3)
	d2, d5 = max(d2, d5), min(d2, d5)
	d0, d1 = max(d0, d1), min(d0, d1)
	d2, d3 = max(d2, d3), min(d2, d3)
	d4, d5 = max(d4, d5), min(d4, d5)
	d1, d2 = max(d1, d2), min(d1, d2)
	d3, d4 = max(d3, d4), min(d3, d4)
	d[0], d[1], d[2], d[3], d[4], d[5] = d0, d1, d2, d3, d4, d5
}

// sortTwelve orders all.
func sortTwelve(d *[Depth]uint64) {
	d0, d1, d2, d3, d4, d5 := d[0], d[1], d[2], d[3], d[4], d[5]
	d6, d7, d8, d9, d10, d11 := d[6], d[7], d[8], d[9], d[10], d[11]
	d0, d8 = max(d0, d8), min(d0, d8)
	d1, d7 = max(d1, d7), min(d1, d7)
	d2, d6 = max(d2, d6), min(d2, d6)
	d3, d11 = max(d3, d11), min(d3, d11)
	d4, d10 = max(d4, d10), min(d4, d10)
	d5, d9 = max(d5, d9), min(d5, d9)
	d0, d1 = max(d0, d1), min(d0, d1)
	d2, d5 = max(d2, d5), min(d2, d5)
	d3, d4 = max(d3, d4), min(d3, d4)
	d6, d9 = max(d6, d9), min(d6, d9)
	d7, d8 = max(d7, d8), min(d7, d8)
	d10, d11 = max(d10, d11), min(d10, d11)
	d0, d2 = max(d0, d2), min(d0, d2)
	d1, d6 = max(d1, d6), min(d1, d6)
	d5, d10 = max(d5, d10), min(d5, d10)
	d9, d11 = max(d9, d11), min(d9, d11)
	d0, d3 = max(d0, d3), min(d0, d3)
	d1, d2 = max(d1, d2), min(d1, d2)
	d4, d6 = max(d4, d6), min(d4, d6)
	d5, d7 = max(d5, d7), min(d5, d7)
	d8, d11 = max(d8, d11), min(d8, d11)
	d9, d10 = max(d9, d10), min(d9, d10)
	d1, d4 = max(d1, d4), min(d1, d4)
	d3, d5 = max(d3, d5), min(d3, d5)
	d6, d8 = max(d6, d8), min(d6, d8)
	d7, d10 = max(d7, d10), min(d7, d10)
	d1, d3 = max(d1, d3), min(d1, d3)
	d2, d5 = max(d2, d5), min(d2, d5)
	d6, d9 = max(d6, d9), min(d6, d9)
	d8, d10 = max(d8, d10), min(d8, d10)
	d2, d3 = max(d2, d3), min(d2, d3)
	d4, d5 = max(d4, d5), min(d4, d5)
	d6, d7 = max(d6, d7), min(d6, d7)
	d8, d9 = max(d8, d9), min(d8, d9)
	d4, d6 = max(d4, d6), min(d4, d6)
	d5, d7 = max(d5, d7), min(d5, d7)
	d3, d4 = max(d3, d4), min(d3, d4)
	d5, d6 = max(d5, d6), min(d5, d6)
	d7, d8 = max(d7, d8), min(d7, d8)
	d[0], d[1], d[2], d[3], d[4], d[5] = d0, d1, d2, d3, d4, d5
	d[6], d[7], d[8], d[9], d[10], d[11] = d6, d7, d8, d9, d10, d11
}
