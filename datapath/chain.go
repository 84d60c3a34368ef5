package datapath

import (
	"math/bits"
	"unsafe"

	"sextant/lb/pool"
)

// The programs have chains as package pool has them, but for the order of octets of ids. Tables of
// ten thousand services are a gigabyte of them: so ids are turned around four at a time.

// octetsOfIDs are chains of both kinds, as two numbers of the machine.
type octetsOfIDs [2]uint64

// It does not compile if the sizes differ; TestChainsInBothOrders compares the places.
var (
	_ [unsafe.Sizeof(octetsOfIDs{})]byte = [unsafe.Sizeof(chain{})]byte{}
	_ [unsafe.Sizeof(octetsOfIDs{})]byte = [unsafe.Sizeof(pool.Chain{})]byte{}
)

// lengths are the octets of the second number that are no part of an id: length and candidates.
const lengths = 0xffff << 32

func (c octetsOfIDs) turned() octetsOfIDs {
	const low = 0x00ff00ff00ff00ff // octet of each pair
	turned := c[1]&low<<8 | c[1]>>8&low
	return octetsOfIDs{c[0]&low<<8 | c[0]>>8&low, turned&^lengths | c[1]&lengths}
}

// chainOf is a chain as the programs read it.
func chainOf(c pool.Chain) chain {
	wire := (*octetsOfIDs)(unsafe.Pointer(&c)).turned()
	return *(*chain)(unsafe.Pointer(&wire))
}

// asInPool are the same chains, in the order of octets that they have.
func asInPool(wire []chain) []pool.Chain {
	return unsafe.Slice((*pool.Chain)(unsafe.Pointer(unsafe.SliceData(wire))), len(wire))
}

// turnedID is an id as the programs have it.
func turnedID(id uint16) uint16 { return bits.ReverseBytes16(id) }

// writeChains writes all chains of a generation.
func writeChains(wire []chain, g *pool.Generation) {
	if g.WriteFirst(asInPool(wire), turnedID) {
		return
	}
	for b, c := range g.Chains() {
		wire[b] = chainOf(c)
	}
}

// inHostOrder are chains as package pool has them.
func inHostOrder(wire []chain) []pool.Chain {
	chains := make([]pool.Chain, len(wire), pool.WholePages(len(wire)))
	for i := range wire {
		turned := (*octetsOfIDs)(unsafe.Pointer(&wire[i])).turned()
		chains[i] = *(*pool.Chain)(unsafe.Pointer(&turned))
	}
	return chains
}
