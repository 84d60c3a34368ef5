package host

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/linux"
)

// named is how many VIPs a warning names.
const named = 3

// Warnings is role.Room. A host takes connections to its VIPs whether or not the kernel would
// deliver their packets: addresses of an interface that goes down are gone for good.
func (h *Room) Warnings() []string {
	if h.Runs == nil {
		return nil
	}
	var vips []netip.Addr
	for _, s := range h.Runs.Services {
		if !slices.Contains(vips, s.VIP) {
			vips = append(vips, s.VIP)
		}
	}
	missing := linux.Undelivered(vips)
	if len(missing) == 0 {
		return nil
	}
	var texts []string
	for _, vip := range missing[:min(named, len(missing))] {
		texts = append(texts, vip.String())
	}
	if more := len(missing) - named; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return []string{fmt.Sprintf("clients of %s get no answer: that is no address of this machine, "+
		"and the kernel does not deliver packets to it; ip addr add %s dev lo",
		strings.Join(texts, ", "), netip.PrefixFrom(missing[0], missing[0].BitLen()))}
}
