package srv6

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// MaxCarrierCSIDs is how many compressed SIDs fit into one address behind the block.
const MaxCarrierCSIDs = (addrOctets - blockOctets) / csidOctets

// Carrier returns block:id1:id2:...:0, the address that visits the ids in order (RFC 9800 section
// 4.1: a C-SID container). It takes 1 to MaxCarrierCSIDs ids, none of them 0.
func (b Block) Carrier(ids ...CSID) (netip.Addr, error) {
	if !b.prefix.IsValid() {
		return netip.Addr{}, fmt.Errorf("carrier of %d ids: the block is not set", len(ids))
	}
	if len(ids) < 1 || len(ids) > MaxCarrierCSIDs {
		return netip.Addr{}, fmt.Errorf("carrier in %s of %d ids: it holds 1 to %d", b, len(ids),
			MaxCarrierCSIDs)
	}
	octets := b.prefix.Addr().As16()
	for i, id := range ids {
		if id == 0 {
			return netip.Addr{}, fmt.Errorf("carrier in %s: id %d of %d is 0, which ends a carrier",
				b, i+1, len(ids))
		}
		binary.BigEndian.PutUint16(octets[blockOctets+csidOctets*i:], uint16(id))
	}
	return netip.AddrFrom16(octets), nil
}

// CSIDs returns the ids of a carrier in the order in which it visits them. The address must be in
// the block, hold at least one id, and nothing behind the 0 that ends them.
func (b Block) CSIDs(a netip.Addr) ([]CSID, error) {
	if !b.Contains(a) {
		return nil, fmt.Errorf("carrier %s is not in the SID block %s", a, b)
	}
	octets := a.As16()
	ids := make([]CSID, 0, MaxCarrierCSIDs)
	for i := blockOctets; i < addrOctets; i += csidOctets {
		id := CSID(binary.BigEndian.Uint16(octets[i:]))
		if id != 0 && len(ids) < (i-blockOctets)/csidOctets {
			return nil, fmt.Errorf("carrier %s: id 0x%s comes after the 0 that ends the carrier", a,
				id)
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("carrier %s holds no id behind the SID block %s", a, b)
	}
	return ids, nil
}

// Shift makes the step to the next compressed SID (RFC 9800 section 4.1.1, NEXT-C-SID): the 16 bits
// behind the 32-bit block are dropped, the rest moves up, zeros come in at the end. It returns the
// new address and the id that is now behind the block, which is 0 if there was no next one.
func Shift(a netip.Addr) (netip.Addr, CSID) {
	octets := a.As16()
	copy(octets[blockOctets:], octets[blockOctets+csidOctets:])
	clear(octets[addrOctets-csidOctets:])
	return netip.AddrFrom16(octets), CSID(binary.BigEndian.Uint16(octets[blockOctets:]))
}
