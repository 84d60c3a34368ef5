package quiclb

import "crypto/aes"

// halves is a text cut in the middle, as the Feistel network of section 5.4.2 has it. If the number
// of bytes is odd, both hold the middle one, and each has cleared the four bits of it that are the
// other's.
type halves struct {
	left, right []byte
	odd         bool
}

func split(text []byte) halves {
	n := (len(text) + 1) / 2
	h := halves{
		left:  append([]byte(nil), text[:n]...),
		right: append([]byte(nil), text[len(text)-n:]...),
		odd:   len(text)%2 == 1,
	}
	h.clear()
	return h
}

func (h halves) clear() {
	if h.odd {
		h.left[len(h.left)-1] &= 0xf0
		h.right[0] &= 0x0f
	}
}

func (h halves) join(text []byte) {
	clear(text)
	copy(text, h.left)
	for i, b := range h.right {
		text[len(text)-len(h.right)+i] |= b
	}
}

// pass changes one half by the other.
func (c *Codec) pass(h halves, number int) {
	by, changed := h.left, h.right
	if number%2 == 0 {
		by, changed = h.right, h.left
	}
	var block [aes.BlockSize]byte
	copy(block[:], by)
	block[14], block[15] = byte(c.config.PlaintextLength()), byte(number)
	c.block.Encrypt(block[:], block[:])
	for i := range changed {
		changed[i] ^= block[i]
	}
	h.clear()
}

func (c *Codec) encryptFourPass(text []byte) {
	h := split(text)
	for number := 1; number <= 4; number++ {
		c.pass(h, number)
	}
	h.join(text)
}

func (c *Codec) decryptFourPass(text []byte) {
	h := split(text)
	for number := 4; number >= 1; number-- {
		c.pass(h, number)
	}
	h.join(text)
}
