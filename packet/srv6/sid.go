package srv6

import (
	"fmt"
	"net/netip"
	"strconv"

	"sextant/packet/syntax"
)

// blockBits, csidBits: the F3216 format of RFC 9800, a 32-bit block and 16-bit compressed SIDs.
const (
	blockBits    = 32
	csidBits     = 16
	blockOctets  = blockBits / 8
	csidOctets   = csidBits / 8
	addrOctets   = 16
	locatorWidth = blockBits + csidBits
)

// CSID is a compressed SID of 16 bits (RFC 9800 section 4, NEXT-C-SID). 0 ends a carrier. 0x0001 to
// MaxGlobalCSID are global: block:csid::/48 is routed to one node. Higher ones are local: they mean
// something only to the node named before them.
type CSID uint16

// MaxGlobalCSID is the highest global compressed SID.
const MaxGlobalCSID CSID = 0xdfff

// Global reports whether the id names a node in the whole SR domain.
func (c CSID) Global() bool { return c != 0 && c <= MaxGlobalCSID }

// String returns the id as it appears in an address, in hexadecimal.
func (c CSID) String() string { return fmt.Sprintf("%x", uint16(c)) }

// ParseCSID reads what String writes: 1 to 4 hexadecimal digits, not 0.
func ParseCSID(text string) (CSID, error) {
	n, err := strconv.ParseUint(text, 16, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no compressed SID; write 1 to 4 hexadecimal digits, not 0",
			text)
	}
	return CSID(n), nil
}

// Block is the address block of 32 bits that all SIDs of an SR domain share. The zero Block
// contains nothing.
type Block struct{ prefix netip.Prefix }

// ParseBlock reads a block such as "fcbb:bb00::/32".
func ParseBlock(text string) (Block, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return Block{}, syntax.Wrong("write it like fcbb:bb00::/32",
			"SID block %q is not an IPv6 prefix", text)
	}
	addr := prefix.Addr()
	switch {
	case !addr.Is6() || prefix.Bits() != blockBits:
		return Block{}, syntax.Wrong("write an IPv6 prefix of 32 bits like fcbb:bb00::/32",
			"SID block %s: it must be an IPv6 prefix of %d bits, like fcbb:bb00::/32", text,
			blockBits)
	case prefix.Masked() != prefix:
		return Block{}, syntax.Wrong("did you mean "+prefix.Masked().String()+"?",
			"SID block %s has bits behind its length", text)
	case addr.IsUnspecified(), addr.IsMulticast(), addr.IsLinkLocalUnicast():
		return Block{}, syntax.Wrong("choose a unique local or global block",
			"SID block %s: addresses in it are not routed", text)
	}
	return Block{prefix}, nil
}

// Prefix returns the block as a prefix of 32 bits.
func (b Block) Prefix() netip.Prefix { return b.prefix }

// String returns the block as ParseBlock reads it.
func (b Block) String() string { return b.prefix.String() }

// Contains reports whether the address is in the block, and so may be a SID of the domain.
func (b Block) Contains(a netip.Addr) bool { return b.prefix.Contains(a) }

// Locator returns block:id::/48, the prefix that is routed to the node with the global id.
func (b Block) Locator(id CSID) (netip.Prefix, error) {
	if !id.Global() {
		return netip.Prefix{}, fmt.Errorf(
			"locator in %s: id 0x%s is not global; choose 0x1 to 0x%s", b, id, MaxGlobalCSID)
	}
	carrier, err := b.Carrier(id)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(carrier, locatorWidth), nil
}

// HasArgument reports whether any bit of the address behind the SID's prefix is set: the argument
// of RFC 8986 section 3.1, which in a NEXT-C-SID carrier holds the SIDs still to come. The address
// must be in the prefix.
func HasArgument(sid netip.Prefix, a netip.Addr) bool {
	masked, err := a.Prefix(sid.Bits())
	return err == nil && masked.Addr() != a
}
