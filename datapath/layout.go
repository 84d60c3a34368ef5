package datapath

import (
	"net/netip"
	"time"
)

// The structures that the programs share with this package are in structs_bpfel.go, made by
// "make generate".

const (
	pathMaxSIDs       = len(servicePath{}.IDs)
	infrastructureMax = len(infrastructure{}.Prefixes)
	sidsMax           = len(hostSettings{}.SIDs)
	countersBlock     = uint32(len(backendCounters{}.Counters))
	captureMax        = len(capture{}.Bytes)

	pathsMax      = 2     // PATHS_MAX
	pathPlaces    = 1024  // PATH_PLACES
	pathSteps     = 16    // PATH_STEPS
	servicesMax   = 1024  // SERVICES_MAX
	counters      = 32768 // COUNTERS
	countersStep  = 20251 // COUNTERS_STEP
	counterProbes = 64    // COUNTERS_PROBES
	nextHopSIDs   = 4096  // NEXT_HOP_SIDS
)

// limitOf returns the bucket of a rate per second, which fills up to burst.
func limitOf(rate, burst int) limit {
	interval := uint64(time.Second) / uint64(rate)
	return limit{IntervalNs: interval, ToleranceNs: interval * uint64(burst-1)}
}

// Where a service's load is known from, enum load_source.
const (
	loadReported    = 1
	loadAcceptQueue = 2
)

// nextHopSend is NEXT_HOP_SEND of enum next_hop_how.
const nextHopSend = 1

// addressOf is zero for the zero value.
func addressOf(a netip.Addr) address { return a.As16() }

// prefixOf returns p as address and mask; the zero prefix matches nothing.
func prefixOf(p netip.Prefix) prefix {
	return prefix{Address: addressOf(p.Masked().Addr()), Mask: maskOf(p.Bits())}
}

func maskOf(bits int) address {
	var m address
	for i := range m {
		n := min(max(bits-8*i, 0), 8)
		m[i] = byte(uint16(0xff00) >> n)
	}
	return m
}

// prefixesOf returns a table of prefixes; those behind the last one match nothing.
func prefixesOf(prefixes []netip.Prefix) (out [infrastructureMax]prefix) {
	for i, p := range prefixes {
		out[i] = prefixOf(p)
	}
	return out
}

// truth is a bool as the programs read it.
func truth(set bool) uint16 {
	if set {
		return 1
	}
	return 0
}

func bigEndian(v uint16) [2]byte { return [2]byte{byte(v >> 8), byte(v)} }

func fromBigEndian(b [2]byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }
