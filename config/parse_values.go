package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sextant/packet/lists"
	"sextant/packet/srv6"
)

// ParseAddress reads an IPv4 or IPv6 address without a zone.
func ParseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil && a.Is4In6() && a.Zone() == "" {
		return netip.Addr{}, invalid(fmt.Sprintf("%q is an IPv4 address in IPv6 form", s),
			"write "+a.Unmap().String())
	}
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, invalid(fmt.Sprintf("%q is not an IP address", s),
			"write it like 2001:db8::80 or 192.0.2.80")
	}
	return a, nil
}

// ParseSID reads a segment identifier, an IPv6 address.
func ParseSID(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || !a.Is6() || a.Is4In6() {
		return netip.Addr{}, invalid(fmt.Sprintf("%q is not a SID", s),
			`write an IPv6 address like "fcbb:bb00:1::"`)
	}
	return a, nil
}

// ParsePort reads a port number, or "any" as AnyPort.
func ParsePort(s string) (uint16, error) {
	if s == "any" {
		return AnyPort, nil
	}
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 {
		return 0, invalid(fmt.Sprintf("port %q is not a port", s), "write 1 to 65535, or any")
	}
	return uint16(port), nil
}

// ParsePermille reads a share from 0 to 1 with at most three decimals, as permille.
func ParsePermille(s string) (int, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) <= 3 && len(whole) <= 1 && s != "" && s != "." {
		n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 3-len(fraction)), 10, 16)
		if err == nil && n <= 1000 {
			return int(n), nil
		}
	}
	return 0, invalid(fmt.Sprintf("%q is not a share", s),
		"write a number from 0 to 1 with at most three decimals, like 0.4")
}

// FormatPermille writes a share as ParsePermille reads it.
func FormatPermille(permille int) string {
	return strconv.FormatFloat(float64(permille)/1000, 'f', -1, 64)
}

// parsePrefix reads an IPv6 prefix whose host bits are 0.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is6() || p.Addr().Is4In6() {
		return netip.Prefix{}, invalid(fmt.Sprintf("%q is not an IPv6 prefix", s),
			`write it like "fd00:5e::/48"`)
	}
	if p != p.Masked() {
		return netip.Prefix{}, invalid(fmt.Sprintf("prefix %s has bits behind its length", s),
			"write "+p.Masked().String())
	}
	return p, nil
}

func parseBehavior(s string) (srv6.Behavior, error) {
	b, err := srv6.ParseBehavior(s)
	for _, known := range hostBehaviors {
		if err == nil && b == known {
			return b, nil
		}
	}
	return 0, invalid(fmt.Sprintf("unknown behavior %q", s), "write "+alternatives(hostBehaviors))
}

// ParseListener reads an address and port on which a program listens.
func ParseListener(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{}, invalid(fmt.Sprintf("%q is not an address and port", s),
			`write it like "[::1]:9477" or "127.0.0.1:9477"`)
	}
	return a, nil
}

// hostBehaviors are what bpf/host.c does at a local SID.
var hostBehaviors = []srv6.Behavior{
	srv6.EndOFFER, srv6.EndDT4, srv6.EndDT6, srv6.EndDT46, srv6.EndDT4COND, srv6.EndDT6COND,
	srv6.EndDT46COND,
}

// alternatives writes "a, b or c".
func alternatives[T any](known []T) string {
	texts := lists.Map(known, func(k T) string { return fmt.Sprint(k) })
	if len(texts) == 1 {
		return texts[0]
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}
