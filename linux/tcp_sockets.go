package linux

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// TCPEnds are the two ends of a TCP socket.
type TCPEnds struct{ Local, Remote netip.AddrPort }

// TCPProgress is how far a TCP socket has come.
type TCPProgress struct {
	Acked uint64 // octets that the other end has acknowledged
	// of retransmissions in a row; routers that answer "unreachable" take some back
	Timeouts int
	Silent   time.Duration // since the other end has acknowledged something
	MPTCP    MPTCPSubflow
}

// MPTCPSubflow is what a TCP socket is to a connection of MPTCP.
type MPTCPSubflow struct {
	Token  uint32 // of the connection, at this end; 0: there is none
	ID     uint8  // of the local end
	First  bool   // this host opened the connection by it
	Joined bool   // this host opened it beside the first one
	Backup bool   // this host wants others to be used in its place
}

// tcpEstablished is the state of a connection that stands at both ends, TCP_ESTABLISHED.
const tcpEstablished = 1

// The kernel's messages about sockets: include/uapi/linux/inet_diag.h and mptcp.h.
const (
	inetDiagRequest = 56 // octets of struct inet_diag_req_v2
	inetDiagMessage = 72 // octets of struct inet_diag_msg

	inetDiagInfo     = 2
	inetDiagULPInfo  = 19
	inetULPMPTCP     = 3
	mptcpTokenLocal  = 2
	mptcpFlags       = 8
	mptcpIDLocal     = 10
	flagFirst        = 1 << 1 // MPTCP_SUBFLOW_FLAG_MCAP_LOC
	flagJoined       = 1 << 3 // MPTCP_SUBFLOW_FLAG_JOIN_LOC
	flagBackup       = 1 << 5 // MPTCP_SUBFLOW_FLAG_BKUP_LOC
	tcpInfoBackoff   = 4      // in struct tcp_info
	tcpInfoAckSilent = 56     // milliseconds
	tcpInfoAcked     = 120
)

// TCPSockets returns how far the established connections of this namespace have come.
func TCPSockets() (map[TCPEnds]TCPProgress, error) {
	all := map[TCPEnds]TCPProgress{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		request := nl.NewNetlinkRequest(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
		what := make([]byte, inetDiagRequest)
		what[0], what[1], what[2] = family, unix.IPPROTO_TCP, 1<<(inetDiagInfo-1)
		binary.NativeEndian.PutUint32(what[4:], 1<<tcpEstablished)
		request.AddRawData(what)
		err := request.ExecuteIter(unix.NETLINK_INET_DIAG, unix.SOCK_DIAG_BY_FAMILY,
			func(message []byte) bool {
				if ends, progress, ok := parseTCPSocket(message); ok {
					all[ends] = progress
				}
				return true
			})
		if err != nil {
			return nil, fmt.Errorf("read TCP sockets: %w", err)
		}
	}
	return all, nil
}

// parseTCPSocket reads a message about a socket.
func parseTCPSocket(b []byte) (ends TCPEnds, p TCPProgress, ok bool) {
	if len(b) < inetDiagMessage {
		return ends, p, false
	}
	octets := 4
	if b[0] == unix.AF_INET6 {
		octets = 16
	}
	local, _ := netip.AddrFromSlice(b[8 : 8+octets])
	remote, _ := netip.AddrFromSlice(b[24 : 24+octets])
	ends = TCPEnds{netip.AddrPortFrom(local.Unmap(), binary.BigEndian.Uint16(b[4:])),
		netip.AddrPortFrom(remote.Unmap(), binary.BigEndian.Uint16(b[6:]))}
	attributes, err := attributesOf(b[inetDiagMessage:])
	if err != nil {
		return ends, p, false
	}
	for _, a := range attributes {
		switch v := a.Value; {
		case a.Attr.Type == inetDiagInfo && len(v) >= tcpInfoAcked+8:
			p.Timeouts = int(v[tcpInfoBackoff])
			p.Silent = time.Duration(binary.NativeEndian.Uint32(v[tcpInfoAckSilent:])) *
				time.Millisecond
			p.Acked, ok = binary.NativeEndian.Uint64(v[tcpInfoAcked:]), true
		case a.Attr.Type&nlaTypeMask == inetDiagULPInfo:
			p.MPTCP = parseULP(v)
		}
	}
	return ends, p, ok
}

// nlaTypeMask leaves the flags of an attribute's type out.
const nlaTypeMask = 0x3fff

// parseULP reads what a socket is to a connection of MPTCP; the zero value: nothing.
func parseULP(b []byte) (s MPTCPSubflow) {
	layers, err := attributesOf(b)
	if err != nil {
		return s
	}
	for _, layer := range layers {
		if layer.Attr.Type&nlaTypeMask != inetULPMPTCP {
			continue
		}
		attributes, err := attributesOf(layer.Value)
		if err != nil {
			return s
		}
		for _, a := range attributes {
			switch v := a.Value; {
			case a.Attr.Type == mptcpTokenLocal && len(v) == 4:
				s.Token = binary.NativeEndian.Uint32(v)
			case a.Attr.Type == mptcpIDLocal && len(v) == 1:
				s.ID = v[0]
			case a.Attr.Type == mptcpFlags && len(v) == 4:
				flags := binary.NativeEndian.Uint32(v)
				s.First, s.Joined = flags&flagFirst != 0, flags&flagJoined != 0
				s.Backup = flags&flagBackup != 0
			}
		}
	}
	return s
}
