package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// What the sections headend and merge need not say.
const (
	// of the first path (RFC 9256 section 2.7); each that follows has one less
	DefaultPreference = 100
	DefaultMergeRate  = 100_000
	DefaultMergeSkew  = 50 * time.Millisecond
	DefaultMergeReset = 2 * time.Second
)

// ParseAnyPrefix reads an IPv4 or IPv6 prefix whose host bits are 0.
func ParseAnyPrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, invalid(fmt.Sprintf("%q is not a prefix", s),
			`write it like "2001:db8::/32" or 192.0.2.0/24`)
	}
	if p != p.Masked() {
		return netip.Prefix{}, invalid(fmt.Sprintf("prefix %s has bits behind its length", s),
			"write "+p.Masked().String())
	}
	return p, nil
}

// ipProtocols are those that have a name in node files.
var ipProtocols = []struct {
	name   string
	number int
}{{"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmpv6", 58}, {"sctp", 132}}

// ParseIPProtocol reads an IP protocol: its name or number.
func ParseIPProtocol(s string) (int, error) {
	for _, p := range ipProtocols {
		if p.name == s {
			return p.number, nil
		}
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil && n > 0 {
		return int(n), nil
	}
	return 0, invalid(fmt.Sprintf("%q is not an IP protocol", s),
		"write tcp, udp, icmp, icmpv6, sctp or a number from 1 to 255")
}

// FormatIPProtocol writes a protocol as ParseIPProtocol reads it; 0 is "".
func FormatIPProtocol(number int) string {
	for _, p := range ipProtocols {
		if p.number == number {
			return p.name
		}
	}
	if number == 0 {
		return ""
	}
	return strconv.Itoa(number)
}

// ParsePortRange reads "80" or "5000-5010".
func ParsePortRange(s string) (PortRange, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	low, errLow := strconv.ParseUint(first, 10, 16)
	high, errHigh := strconv.ParseUint(last, 10, 16)
	if errLow != nil || errHigh != nil || low == 0 || high < low {
		return PortRange{}, invalid(fmt.Sprintf("%q is no range of ports", s),
			"write a port like 80, or two like 5000-5010")
	}
	return PortRange{uint16(low), uint16(high)}, nil
}

// String writes the range as ParsePortRange reads it; all ports are "".
func (r PortRange) String() string {
	switch {
	case r == PortRange{}:
		return ""
	case r.First == r.Last:
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}
