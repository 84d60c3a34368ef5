package datapath

import (
	"net/netip"
	"time"
	"unsafe"

	"sextant/lb/acceptance"
)

// Go twins of the structures that the programs share with this package, field by field. A test
// compares them with the type information (BTF) in the compiled objects. Addresses are 16 bytes in
// network order, IPv4 as ::ffff:a.b.c.d.

const (
	chainMax          = 6     // CHAIN_MAX
	pathMaxSIDs       = 4     // PATH_MAX_SIDS
	pathsMax          = 2     // PATHS_MAX
	servicesMax       = 1024  // SERVICES_MAX
	infrastructureMax = 4     // INFRASTRUCTURE_PREFIXES
	locatorsMax       = 4     // LOCATORS_MAX
	sidsMax           = 16    // SIDS_MAX
	counters          = 32768 // COUNTERS
	countersStep      = 20251 // COUNTERS_STEP
	counterProbes     = 64    // COUNTERS_PROBES
	countersBlock     = 16    // COUNTERS_BLOCK
	nextHopSIDs       = 4096  // NEXT_HOP_SIDS
	nextHopChoices    = 8     // NEXT_HOP_CHOICES
	captureMax        = 4096  // CAPTURE_MAX
)

type address [16]byte

type prefix struct {
	Address, Mask address
}

type domain struct {
	Secret         [16]byte
	Block          prefix
	Locators       [locatorsMax]prefix
	Infrastructure [infrastructureMax]prefix
	Source         address
}

type edgeSettings struct {
	Domain        domain
	Shadow        address
	LastOffer     [2]byte // network order
	Encapsulation uint8
	Side          uint8
	Reserved      [4]uint8
	InsideMask    [8]byte // network order
	Inside        [8]byte
}

type serviceKey struct {
	VIP      address
	Port     [2]byte // network order
	Protocol uint8
	IPv4     uint8
	Reserved [4]uint8
}

type service struct {
	Index         uint32
	Buckets       uint32
	FormerBuckets uint32
	QUIC          uint16
	Limited       uint8
	Paths         uint8
}

type former struct {
	Secret     [16]byte
	On         uint32
	FirstTable uint32
}

type chain struct {
	IDs        [chainMax][2]byte // network order
	Length     uint8
	Candidates uint8
	Shadow     [2]byte // network order
}

type servicePath struct {
	IDs      [pathMaxSIDs][2]byte // network order
	Length   uint32
	Reserved uint32
}

const servicePathBytes = uint32(unsafe.Sizeof(servicePath{}))

type hostSettings struct {
	Domain         domain
	SIDs           [sidsMax]localSID
	NetnsCookie    uint64
	RefusalJiffies uint32
	MSSIPv4        uint16
	MSSIPv6        uint16
}

// limit is a token bucket.
type limit struct {
	IntervalNs  uint64 // between two at the permitted rate
	ToleranceNs uint64 // how far ahead of that rate
}

// newConnections is how many of them a service may get.
type newConnections struct {
	Limit limit
	Due   uint64
}

// Openings are SYNs to a service that has a limit.
type Openings struct {
	Taken   uint64
	Refused uint64
}

// limitOf returns the bucket of a rate per second, which fills up to burst.
func limitOf(rate, burst int) limit {
	interval := uint64(time.Second) / uint64(rate)
	return limit{IntervalNs: interval, ToleranceNs: interval * uint64(burst-1)}
}

type localSID struct {
	Prefix   prefix
	Behavior uint32
	Reserved uint32
	Backup   address
}

type acceptPolicy struct {
	Kind                      uint32
	Threshold                 uint32
	Window                    uint32
	Workers                   uint32
	LowPermille, HighPermille uint32
	Cores                     uint32
	Reported                  uint32
}

type acceptState struct {
	Lock      uint32
	Threshold uint32
	Attempts  uint32
	Accepted  uint32
	Levels    [acceptance.MaxLevels]uint32
}

// Where a service's load is known from, enum load_source.
const (
	loadReported    = 1
	loadAcceptQueue = 2
)

// nextHopSend is NEXT_HOP_SEND of enum next_hop_how.
const nextHopSend = 1

type nextHop struct {
	Since, Epoch uint32
	Interface    uint32
	ID           uint16
	MTU          uint16
	Addresses    [12]byte // destination, source
	How          uint8
	Reserved     [3]uint8
}

// nextHopSet are the answers for one SID, by choice.
type nextHopSet struct {
	Choices [nextHopChoices]nextHop
}

// capture is a frame as it arrived, of which only the first Kept bytes are there, and what became
// of it.
type capture struct {
	Time      uint64
	Interface uint32
	Length    uint32
	Kept      uint32
	Verdict   uint32
	Reason    uint32
	Outcome   uint32
	Lost      uint64
	Bytes     [captureMax]uint8
}

// Traffic counts IP packets of clients and servers, without encapsulation.
type Traffic struct {
	Packets uint64
	Bytes   uint64
}

// serviceCounters is struct service_counters, of one CPU.
type serviceCounters struct {
	All    Traffic
	Others Traffic
}

// backendCounter is struct backend_counter, of one CPU.
type backendCounter struct {
	Traffic  Traffic
	Owner    uint32 // service and id; 0: the counter is free
	Reserved uint32
}

type backendCounters struct {
	Counters [countersBlock]backendCounter
}

// HostTraffic counts what a host was offered for one service.
type HostTraffic struct {
	Offered  uint64 // opening SYNs that had another candidate left
	Accepted uint64 // of these, taken by the acceptance policy
	Refused  uint64 // of these, passed on
	Forced   uint64 // opening SYNs taken as the last candidate
	Taken    Traffic
	PassedOn Traffic
}

// flowCacheSettings is struct flow_cache_settings.
type flowCacheSettings struct {
	SID       address
	Sets      uint32
	RestShift uint32
}

// flowSet is four words of the flow cache: 32 bits of the flow hash, 16 of the backend's id, 16 of
// the time.
type flowSet struct {
	Ways [flowWays]uint64
}

// HostSignals counts what clients of a service met with on a host.
type HostSignals struct {
	Resets      uint64 // RSTs that left
	Established uint64 // connections that were opened as a whole
	ByEdge      uint64 // SYN-ACKs that went by way of the edge that asked for them
	NotRouted   uint64 // SYN-ACKs that an edge asked for to which there is no route
}

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
