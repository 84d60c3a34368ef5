package pool_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

func TestRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rendezvous(rapid.IntRange(1, 40).Draw(t, "buckets"),
			rapid.IntRange(1, 3).Draw(t, "candidates"))
		spec.Policy = rapid.SampledFrom([]pool.Policy{pool.Offer, pool.Shadow}).Draw(t, "policy")
		g, err := pool.New(spec, drawBackends(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		if g, err = g.Next(drawBackends(t), 0); err != nil {
			t.Fatal(err)
		}
		read, err := pool.ParseRecord(g.Record())
		if err != nil || !slices.Equal(read, chains(g)) {
			t.Fatalf("read %v, %v; want %v", read, err, chains(g))
		}
		// Without the odd ids, the others are as they were.
		read, err = pool.ParseRecord(g.RecordWithout(func(id uint16) bool { return id%2 == 1 }))
		if err != nil || len(read) != g.Buckets() {
			t.Fatalf("read %d chains, %v; want %d", len(read), err, g.Buckets())
		}
		for b, c := range chains(g) {
			want := slices.DeleteFunc(slices.Clone(c.IDs[:c.Length]),
				func(id uint16) bool { return id%2 == 1 })
			if got := read[b].IDs[:read[b].Length]; !slices.Equal(got, want) {
				t.Fatalf("bucket %d without odd ids: %v, want %v of %v", b, got, want, c)
			}
		}
	})
}

func TestRecordRefuses(t *testing.T) {
	good := begin(t, rendezvous(3, 1), up(2)).Record()
	for name, test := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"nothing": {func([]byte) []byte { return nil }, "does not begin like one"},
		"another file": {func(b []byte) []byte {
			b[0] = 'X'
			return b
		}, "does not begin like one"},
		"another version": {func(b []byte) []byte { b[4] = 2; return b }, "version 02 00 00 00"},
		"no buckets": {func(b []byte) []byte {
			b[11] = 0
			return b
		}, "can't hold 0 buckets"},
		"too many buckets": {func(b []byte) []byte {
			b[8] = 1
			return b
		}, "can't hold 16777219 buckets"},
		"cut off":          {func(b []byte) []byte { return b[:len(b)-1] }, "bucket 2"},
		"more than there":  {func(b []byte) []byte { return append(b, 0) }, "1 bytes behind"},
		"a chain too long": {func(b []byte) []byte { b[12] = 7; return b }, "bucket 0"},
		"a backend twice": {func(b []byte) []byte {
			copy(b[18:20], b[16:18])
			return b
		}, "there twice"},
		"more candidates": {func(b []byte) []byte { b[13] = 3; return b }, "3 candidates of 2"},
		"a backend that is": {func(b []byte) []byte {
			copy(b[16:18], []byte{0, 0})
			return b
		}, "is 0 or there twice"},
	} {
		if _, err := pool.ParseRecord(test.change(bytes.Clone(good))); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

// written is the record of chains, by the format that the package describes.
func written(chains []pool.Chain) []byte {
	b := append([]byte("SXCH\x01\x00\x00\x00"), make([]byte, 4)...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(chains)))
	for _, c := range chains {
		b = append(b, c.Length, c.Candidates, byte(c.Shadow>>8), byte(c.Shadow))
		for _, id := range c.IDs[:c.Length] {
			b = append(b, byte(id>>8), byte(id))
		}
	}
	return b
}

// Whatever comes is read or refused, and what is read is written the same, and not longer than a
// record of as many buckets can be.
func FuzzParseRecord(f *testing.F) {
	f.Add(begin(f, rendezvous(3, 2), up(4)).Record())
	f.Add([]byte("SXCH\x01\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, record []byte) {
		read, err := pool.ParseRecord(record)
		if err != nil {
			return
		}
		if again := written(read); !bytes.Equal(again, record) {
			t.Fatalf("% x is read as % x", record, again)
		}
		if most := pool.MaxRecordBytes(len(read)); len(record) > most {
			t.Errorf("%d buckets have a record of %d bytes, more than %d", len(read), len(record),
				most)
		}
		g, err := pool.Resume(pool.Spec{Buckets: len(read), Candidates: 1}, read, nil, 0)
		if err != nil {
			t.Fatalf("what was read can't be resumed: %v", err)
		}
		if g.Buckets() != len(read) {
			t.Errorf("%d buckets, want %d", g.Buckets(), len(read))
		}
	})
}

func TestMerge(t *testing.T) {
	own := []pool.Chain{{IDs: [6]uint16{1, 2}, Length: 2, Candidates: 2},
		{IDs: [6]uint16{1, 2, 3, 4, 5}, Length: 5, Candidates: 1}}
	other := []pool.Chain{{IDs: [6]uint16{2, 7, 1, 8}, Length: 4, Candidates: 1},
		{IDs: [6]uint16{6, 7}, Length: 2, Candidates: 2}}
	merged, err := pool.Merge(own, other)
	want := []pool.Chain{
		{IDs: [6]uint16{1, 2, 7, 8}, Length: 4, Candidates: 2},
		{IDs: [6]uint16{1, 2, 3, 4, 5, 6}, Length: 6, Candidates: 1},
	}
	if err != nil || !slices.Equal(merged, want) {
		t.Errorf("merged %v, %v; want %v", merged, err, want)
	}
	if _, err := pool.Merge(own, other[:1]); err == nil {
		t.Error("tables of different sizes are merged")
	}
}
