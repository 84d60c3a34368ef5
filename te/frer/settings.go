package frer

import (
	"fmt"
	"math/bits"
	"time"
)

// blockNumbers is how many numbers a word of the history holds.
const blockNumbers = 32

// Bounds of the settings.
const (
	LeastHistoryLog2 = 10
	MostHistoryLog2  = 17
	// DefaultReset is how long no packet must have been accepted for all to be forgotten:
	// frerSeqRcvyResetMSec, as used here.
	DefaultReset = 2 * time.Second

	// BitsTLV and BitsSID are the lengths of a sequence number in the two forms.
	BitsTLV = 32
	BitsSID = 16
)

// Settings are what is fixed of a recovery.
type Settings struct {
	// a number is told apart from those up to 2^HistoryLog2 before and after it
	HistoryLog2 int
	Bits        int // of a sequence number: 32 in the TLV form, 16 in the SID form
	// without a packet accepted for so long, all is forgotten, and the next one accepted
	Reset time.Duration
}

// HistoryFor returns the HistoryLog2 for a rate in packets per second and the greatest difference
// in delay between two paths. A copy that comes later than the history is long is dropped even if
// it is the only one, so that a history of 64 makes a second path useless at a skew of 64 packets.
// A quarter is added for bursts. It fails if no history is long enough.
func HistoryFor(packetsPerSecond float64, skew time.Duration) (int, error) {
	need := packetsPerSecond * skew.Seconds() * 1.25
	for log := LeastHistoryLog2; log <= MostHistoryLog2; log++ {
		if need <= float64(uint64(1)<<log) {
			return log, nil
		}
	}
	return 0, fmt.Errorf("history for %.0f packets/s and a skew of %s: it needs %.0f numbers, "+
		"above the 2^%d that fit; "+
		"choose paths of more similar delay", packetsPerSecond, skew, need, MostHistoryLog2)
}

// Check refuses settings with which elimination can't work.
func (s Settings) Check() error {
	if s.HistoryLog2 < LeastHistoryLog2 || s.HistoryLog2 > MostHistoryLog2 {
		return fmt.Errorf("history of 2^%d numbers; choose 2^%d to 2^%d", s.HistoryLog2,
			LeastHistoryLog2, MostHistoryLog2)
	}
	if s.Bits != BitsTLV && s.Bits != BitsSID {
		return fmt.Errorf("sequence numbers of %d bits; they have %d (TLV) or %d (SID)", s.Bits,
			BitsTLV, BitsSID)
	}
	if s.HistoryLog2 > s.Bits-2 {
		return fmt.Errorf("history of 2^%d numbers of %d bits: at most 2^%d can be told apart",
			s.HistoryLog2, s.Bits, s.Bits-2)
	}
	if s.Reset <= 0 {
		return fmt.Errorf("reset after %s; choose a time above 0, such as %s", s.Reset,
			DefaultReset)
	}
	return nil
}

// History returns the history's length in numbers.
func (s Settings) History() int { return 1 << s.HistoryLog2 }

// Blocks returns how many words the ring has: a power of two, and so many that no two numbers that
// are told apart are of different blocks in one word.
func (s Settings) Blocks() int { return blocks(s.History()) }

func blocks(history int) int {
	need := (history-1)/blockNumbers + 2 // the history can begin and end within a block
	return 1 << bits.Len(uint(need-1))
}

// RoundShift returns by how many bits a number is shifted to get its round of the ring.
func (s Settings) RoundShift() int { return roundShift(s.Blocks()) }

// RoundMask returns the bits of a round that a word's tag has: 16, or as many as a number has.
func (s Settings) RoundMask() uint16 { return roundMask(s.Blocks()) }

func roundShift(blocks int) int { return bits.TrailingZeros(uint(blocks * blockNumbers)) }

func roundMask(blocks int) uint16 { return uint16(min(1<<(32-roundShift(blocks))-1, 0xffff)) }
