// Package packetgen generates frames for differential tests of the data plane: valid packets of
// each kind that the data plane knows, and invalid ones.
//
// The frames depend on the seed and the World only, so that a failure is reproduced by
// its seed and the number of the frame. Making one costs less than a microsecond and no
// allocation, without HMACs.
package packetgen

import (
	"math/rand/v2"
	"net/netip"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Service is one that packets can hit. Port 0 stands for any port.
type Service struct {
	Addr     netip.Addr
	Port     uint16
	Protocol uint8
}

// Connection is a TCP connection, or a request for one, that the host under test has.
type Connection struct {
	Flow flow.Tuple
	// SndISN and RcvISN are the initial sequence numbers of the host and the client. Some
	// of the packets acknowledge the one or continue the other, as those must that follow
	// a SYN-ACK.
	SndISN, RcvISN uint32
}

// World is what the frames are made to hit. Each list may be empty; then nothing hits
// there.
type World struct {
	Services []Service
	// Block is the SID block.
	Block netip.Prefix
	// Locators are prefixes of other SIDs.
	Locators []netip.Prefix
	// Offering and Decapsulating are SIDs of the node under test: those whose argument
	// and SRH hold further candidates, and those which are always last.
	Offering, Decapsulating []netip.Prefix
	// Others are SIDs of other hosts: the further candidates. In a carrier, the 16 bits
	// behind the first 32 stand for a candidate.
	Others []netip.Addr
	// Edge is the source of outer packets, to which routers of the SR domain send what they say
	// about them.
	Edge netip.Addr
	// Learning is the edge's End.LEARN, and Owners are the SIDs which answers on the way there
	// name.
	Learning netip.Addr
	Owners   []netip.Addr
	// Infrastructure are sources inside of the SR domain.
	Infrastructure []netip.Addr
	// ConnectionIDs are those that QUIC packets carry; without one, there is no QUIC in UDP.
	ConnectionIDs [][]byte
	// HMACKeys are those with which SRHs are signed, also some that the node under test does not
	// know; without one, none is.
	HMACKeys []srv6.HMACKey
	// Connections are those of the host under test.
	Connections []Connection
}

const (
	// maxFrame is the length to which payloads can fill a frame. A program's test run takes
	// a page less its headroom.
	maxFrame = 3000
	// maxHeaders is more than the headers of one frame can take.
	maxHeaders = 3000
)

// Generator makes frames. It is not safe for concurrent use.
type Generator struct {
	random *rand.Rand
	world  World
	noise  [2 * maxFrame]byte // where payloads are cut from

	frame      []byte
	headers    []ipHeader  // of the frame, outer first
	extensions []extension // of the frame
	transport  int         // offset of the innermost transport header, 0 if there is none
	protocol   uint8       // of the transport
	nextHeader int         // offset of the field that says what comes next
	cuts       int         // frames cut so far
}

// ipHeader is where an IP header of the frame is.
type ipHeader struct {
	at   int
	ipv6 bool
}

// extension is where an IPv6 extension header of the frame is.
type extension struct {
	at       int
	protocol uint8
}

// New returns the generator of the frames that belong to a seed.
func New(seed uint64, world World) *Generator {
	g := &Generator{
		random: rand.New(rand.NewPCG(seed, 0)),
		world:  world,
		frame:  make([]byte, 0, maxHeaders+maxFrame),
	}
	for i := range g.noise {
		g.noise[i] = byte(g.random.Uint32())
	}
	return g
}

// Next returns a frame for an edge: from a client, or, if the edge has a decapsulating SID, for
// that. It is valid until the next call of a method.
func (g *Generator) Next() []byte {
	if len(g.world.Decapsulating) > 0 && g.oneIn(4) {
		return g.next(g.hostPacket)
	}
	if g.world.Edge.IsValid() && g.oneIn(32) {
		return g.next(g.routerPacket)
	}
	if g.world.Learning.IsValid() && g.oneIn(8) {
		return g.next(g.learnPacket)
	}
	return g.next(g.edgePacket)
}

// NextHost returns a frame for a host. It is valid until the next call of a method.
func (g *Generator) NextHost() []byte {
	return g.next(g.hostPacket)
}

// next returns a frame around what packet makes. Two of three stay whole.
func (g *Generator) next(packet func()) []byte {
	g.frame, g.headers, g.extensions = g.frame[:0], g.headers[:0], g.extensions[:0]
	g.transport, g.protocol = 0, 0
	if g.oneIn(100) {
		return g.garbage()
	}
	packet()
	if g.oneIn(6) {
		g.appendNoise(1 + g.below(46)) // Ethernet padding, or a trailer
	}
	if g.oneIn(3) {
		g.breakFrame()
	}
	return g.frame
}

// below returns a number from 0 to limit-1.
func (g *Generator) below(limit int) int { return g.random.IntN(limit) }

// oneIn is true once in n times.
func (g *Generator) oneIn(n int) bool { return g.random.IntN(n) == 0 }

// percent is true n times in a hundred.
func (g *Generator) percent(n int) bool { return g.random.IntN(100) < n }

// pick returns one of the elements, the zero value if there is none.
func pick[T any](g *Generator, from []T) T {
	if len(from) == 0 {
		var none T
		return none
	}
	return from[g.below(len(from))]
}

// appendNoise appends n random bytes, or as many as there is room for.
func (g *Generator) appendNoise(n int) {
	n = max(0, min(n, maxFrame-len(g.frame)))
	from := g.below(len(g.noise) - n)
	g.frame = append(g.frame, g.noise[from:from+n]...)
}

// appendZeros appends n zero bytes and returns them.
func (g *Generator) appendZeros(n int) []byte {
	at := len(g.frame)
	g.frame = g.frame[:at+n]
	clear(g.frame[at:])
	return g.frame[at:]
}
