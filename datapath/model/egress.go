package model

import "bytes"

// Egress looks at a frame that leaves the host: the MSS option of a SYN-ACK from
// one of the services is lowered to the service's limit, as the client's segments
// will come in encapsulated; then it is encapsulated for the edge that asked for it,
// if one did. Cookie says that it is an answer of which no socket knows. All other frames
// are returned as they are; no frame is dropped here.
func (h *Host) Egress(data []byte, cookie bool) []byte {
	f, reason := parseFrame(data)
	if reason != ReasonNone || f.etherType != etherTypeIPv4 && f.etherType != etherTypeIPv6 {
		return data
	}
	p := packet{data: data, start: f.network, ipv6: f.etherType == etherTypeIPv6}
	// As strict as with an encapsulated packet: what is doubtful is left alone.
	if p.parseHeader(len(data)) != ReasonNone || p.protocol != protocolTCP ||
		p.parseUpper(encapsulated) != ReasonNone {
		return data
	}
	if p.fragment.kind != fragmentNone || !p.transport.has(tcpFlagSYN|tcpFlagACK) {
		return data
	}
	key := ServiceKey{Addr: p.src, Port: p.transport.srcPort, Protocol: p.protocol}
	_, service, ok := findService(h.Services, key)
	if !ok {
		return data
	}
	out := data
	if service.MSS != 0 {
		out = bytes.Clone(data)
		clampMSS(out[p.upper:][:p.transport.headerLength], service.MSS)
	}
	if !cookie {
		if around := h.byEdge(&f, &p, out[p.start:]); around != nil {
			return around
		}
	}
	return out
}
