package srv6

// Copies is how many copies of a packet an edge sends at most: one on each of two paths.
const Copies = 2

// copyMark is the first of the identifiers that say, as the last of a carrier, which copy of its
// packet this one is. No SID may have one of them.
const copyMark CSID = 0xfffe

// CopyMark returns the identifier of copy n, from 0 to Copies-1.
func CopyMark(n int) CSID { return copyMark + CSID(n) }

// CopyOf returns which copy an identifier is the mark of, if it is one.
func CopyOf(id CSID) (n int, ok bool) { return int(id - copyMark), id >= copyMark }
