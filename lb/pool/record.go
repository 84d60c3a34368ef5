package pool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"sextant/lb/consistenthash"
)

// A record is the chains of a service as bytes, from which another process, or another edge, can
// Resume:
//
//	offset  bytes  what
//	0       4      "SXCH"
//	4       1      version, 1
//	5       3      0
//	8       4      number of buckets, big endian, as all that follows
//	12      ...    per bucket: length (1), candidates (1), shadow (2), and the ids in use (2 each)
const (
	recordMagic   = "SXCH"
	recordVersion = 1
	recordHeader  = 12
	recordChain   = 4 // without ids
)

// MaxRecordBytes is how long a record of as many buckets can be.
func MaxRecordBytes(buckets int) int { return recordHeader + buckets*(recordChain+2*MaxChain) }

// Record returns the chains as bytes.
func (g *Generation) Record() []byte { return g.AppendRecord(nil) }

// RecordWithout is Record without the backends whose ids other nodes do not know; nil: none.
func (g *Generation) RecordWithout(own func(id uint16) bool) []byte {
	if own == nil {
		return g.Record()
	}
	chains := g.AllChains()
	Retain(chains, func(id uint16) bool { return !own(id) })
	return appendRecord(nil, len(chains), slices.All(chains))
}

// AppendRecord appends the chains as bytes.
func (g *Generation) AppendRecord(b []byte) []byte {
	return appendRecord(b, g.Buckets(), g.each)
}

func appendRecord(b []byte, buckets int, chains iter.Seq2[int, Chain]) []byte {
	b = slices.Grow(b, MaxRecordBytes(buckets))
	b = append(b, recordMagic...)
	b = append(b, recordVersion, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(buckets))
	for _, c := range chains {
		b = append(b, c.Length, c.Candidates)
		b = binary.BigEndian.AppendUint16(b, c.Shadow)
		for _, id := range c.ids() {
			b = binary.BigEndian.AppendUint16(b, id)
		}
	}
	return b
}

// ParseRecord reads what Record wrote. It refuses chains that no Generation would have.
func ParseRecord(record []byte) ([]Chain, error) {
	if len(record) < recordHeader || string(record[:4]) != recordMagic {
		return nil, errors.New("read record of chains: it does not begin like one")
	}
	if !bytes.Equal(record[4:8], []byte{recordVersion, 0, 0, 0}) {
		return nil, fmt.Errorf("read record of chains: version % x, and this program reads 01 00 "+
			"00 00", record[4:8])
	}
	buckets, rest := binary.BigEndian.Uint32(record[8:]), record[recordHeader:]
	if buckets == 0 || buckets > consistenthash.MaxSlots ||
		uint64(len(rest)) < uint64(buckets)*recordChain {
		return nil, fmt.Errorf("read record of chains: %d bytes can't hold %d buckets", len(rest),
			buckets)
	}
	chains := make([]Chain, buckets)
	for i := range chains {
		var err error
		if rest, err = chains[i].parse(rest); err != nil {
			return nil, fmt.Errorf("read record of chains: bucket %d: %w", i, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("read record of chains: %d bytes behind the last bucket", len(rest))
	}
	return chains, nil
}

// parse reads a chain, and returns what follows it.
func (c *Chain) parse(b []byte) ([]byte, error) {
	if len(b) < recordChain || len(b) < recordChain+2*int(b[0]) || b[0] > MaxChain {
		return nil, fmt.Errorf("%d bytes are left, which is no chain", len(b))
	}
	c.Length, c.Candidates, c.Shadow = b[0], b[1], binary.BigEndian.Uint16(b[2:])
	b = b[recordChain:]
	for i := range int(c.Length) {
		c.IDs[i] = binary.BigEndian.Uint16(b[2*i:])
	}
	return b[2*int(c.Length):], c.check()
}

// Retain takes out of the chains each backend that is not to be kept, and returns in how many
// places that was. The chains are changed.
func Retain(chains []Chain, keep func(id uint16) bool) (dropped int) {
	for i := range chains {
		c := &chains[i]
		kept := Chain{}
		for place, id := range c.ids() {
			if !keep(id) {
				dropped++
				continue
			}
			kept.IDs[kept.Length] = id
			kept.Length++
			if place < int(c.Candidates) {
				kept.Candidates++
			}
		}
		if c.Shadow != 0 && keep(c.Shadow) {
			kept.Shadow = c.Shadow
		} else if c.Shadow != 0 {
			dropped++
		}
		*c = kept
	}
	return dropped
}

// Merge adds to each chain, behind its own, those of another edge's chain that are not in it, as
// long as there is room: an edge that starts without a past takes over that of one which has seen
// it. Both must have as many buckets.
func Merge(own, other []Chain) ([]Chain, error) {
	if len(own) != len(other) {
		return nil, fmt.Errorf("merge chains of %d buckets into those of %d", len(other), len(own))
	}
	merged := make([]Chain, len(own))
	for i := range own {
		merged[i] = own[i]
		for _, id := range other[i].ids() {
			merged[i].push(id, MaxChain)
		}
	}
	return merged, nil
}
