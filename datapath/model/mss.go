package model

import (
	"encoding/binary"
	"math/bits"
)

// TCP option kinds (RFC 9293 section 3.2).
const (
	optionEnd = 0
	optionNop = 1
	optionMSS = 2

	optionMSSLength = 4
)

// clampMSS lowers the MSS option of a TCP header, options included, to limit.
func clampMSS(header []byte, limit uint16) {
	at, found := findMSS(header)
	if !found {
		return
	}
	before := binary.BigEndian.Uint16(header[at:])
	if before <= limit {
		return
	}
	binary.BigEndian.PutUint16(header[at:], limit)
	after := limit
	if at%2 != 0 {
		// The checksum pairs each of these two bytes with another neighbour. As it
		// does not depend on the byte order (RFC 1071 section 2), swapping is enough.
		before, after = bits.ReverseBytes16(before), bits.ReverseBytes16(after)
	}
	updateChecksum(header[tcpChecksumOffset:], before, after)
}

// findMSS returns the offset of the value of the first MSS option. Options that
// cannot be right end the search, as they do in the kernel.
func findMSS(header []byte) (at int, found bool) {
	for at = tcpHeaderLength; at < len(header); {
		switch header[at] {
		case optionEnd:
			return 0, false
		case optionNop:
			at++
			continue
		}
		if at+1 >= len(header) {
			return 0, false
		}
		length := int(header[at+1])
		if length < 2 || at+length > len(header) {
			return 0, false
		}
		if header[at] == optionMSS && length == optionMSSLength {
			return at + 2, true
		}
		at += length
	}
	return 0, false
}

// updateChecksum changes the Internet checksum at the start of b for a 16-bit word
// that changed (RFC 1624 equation 3). A wrong checksum stays wrong.
func updateChecksum(b []byte, before, after uint16) {
	sum := uint32(^binary.BigEndian.Uint16(b)) + uint32(^before) + uint32(after)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b, ^uint16(sum))
}
