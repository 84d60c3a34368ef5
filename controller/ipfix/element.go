package ipfix

// element is an information element in a template. IDs are those of IANA's registry "IPFIX
// Information Elements", or, with enterprise, those of Enterprise.
type element struct {
	id         uint16
	size       uint16 // octets; variable is 65535
	enterprise bool
}

const (
	variable      = 0xffff // RFC 7011 section 7
	enterpriseBit = 0x8000
)

var (
	packetDeltaCount         = element{id: 2, size: 8}
	protocolIdentifier       = element{id: 4, size: 1}
	sourceTransportPort      = element{id: 7, size: 2}
	sourceIPv4Address        = element{id: 8, size: 4}
	destinationTransportPort = element{id: 11, size: 2}
	destinationIPv4Address   = element{id: 12, size: 4}
	egressInterface          = element{id: 14, size: 4}
	sourceIPv6Address        = element{id: 27, size: 16}
	destinationIPv6Address   = element{id: 28, size: 16}
	droppedPacketDeltaCount  = element{id: 133, size: 8}
	observationPointID       = element{id: 138, size: 8}
	flowStartMilliseconds    = element{id: 152, size: 8}
	flowEndMilliseconds      = element{id: 153, size: 8}

	// RFC 9487
	srhFlagsIPv6              = element{id: 492, size: 1}
	srhTagIPv6                = element{id: 493, size: 2}
	srhActiveSegmentIPv6      = element{id: 495, size: 16}
	srhSegmentIPv6ListSection = element{id: 497, size: variable}
	srhSegmentsIPv6Left       = element{id: 498, size: 1}

	// RFC 9951
	pathDelayMeanDeltaMicroseconds = element{id: 530, size: 4}
	pathDelayMinDeltaMicroseconds  = element{id: 531, size: 4}
	pathDelayMaxDeltaMicroseconds  = element{id: 532, size: 4}
	pathDelaySumDeltaMicroseconds  = element{id: 533, size: 8}

	// of the enterprise: no element of IANA's means these
	queueMeanBytes     = element{1, 4, true}
	queueMaxBytes      = element{2, 4, true}
	hopLatencyMeanNS   = element{3, 4, true}
	hopLatencyMaxNS    = element{4, 4, true}
	utilizationMeanPPM = element{5, 4, true}
	utilizationMaxPPM  = element{6, 4, true}
)

// kind says what a record has. The number of its template is firstTemplate + kind.
type kind uint16

const (
	ipv4 kind = 1 << iota
	routed
	delayed
	link
	firstTemplate = 256
)

// elements returns the template of a kind.
func (k kind) elements(withEnterprise bool) []element {
	if k == link {
		all := []element{observationPointID, egressInterface, packetDeltaCount,
			droppedPacketDeltaCount, flowStartMilliseconds, flowEndMilliseconds}
		if withEnterprise {
			all = append(all, queueMeanBytes, queueMaxBytes, hopLatencyMeanNS, hopLatencyMaxNS,
				utilizationMeanPPM, utilizationMaxPPM)
		}
		return all
	}
	all := []element{sourceIPv6Address, destinationIPv6Address}
	if k&ipv4 != 0 {
		all = []element{sourceIPv4Address, destinationIPv4Address}
	}
	all = append(all, sourceTransportPort, destinationTransportPort, protocolIdentifier,
		packetDeltaCount, droppedPacketDeltaCount, flowStartMilliseconds, flowEndMilliseconds)
	if k&delayed != 0 {
		all = append(all, pathDelayMeanDeltaMicroseconds, pathDelayMinDeltaMicroseconds,
			pathDelayMaxDeltaMicroseconds, pathDelaySumDeltaMicroseconds)
	}
	if k&routed != 0 {
		all = append(all, srhFlagsIPv6, srhTagIPv6, srhSegmentsIPv6Left, srhActiveSegmentIPv6,
			srhSegmentIPv6ListSection)
	}
	return all
}

// kinds are all there are: the flows, and links.
var kinds = []kind{0, ipv4, routed, ipv4 | routed, delayed, ipv4 | delayed, routed | delayed,
	ipv4 | routed | delayed, link}
