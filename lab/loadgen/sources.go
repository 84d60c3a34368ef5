package loadgen

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseSources reads a list of source addresses, separated by commas: single
// addresses and prefixes, such as "2001:db8::7,2001:db8:1::/64".
func ParseSources(text string) ([]netip.Prefix, error) {
	var sources []netip.Prefix
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if address, err := netip.ParseAddr(item); err == nil {
			sources = append(sources, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("loadgen: source %q is neither an address nor a prefix", item)
		}
		sources = append(sources, prefix)
	}
	return sources, nil
}

// sources hands out source addresses: one of each prefix in turn, within a
// prefix one after the other from the address that it was written with, and
// around at its end.
type sources struct {
	prefixes []netip.Prefix
	next     []netip.Addr // per prefix
	turn     int
}

// newSources checks that every prefix is of the family of target.
func newSources(prefixes []netip.Prefix, target netip.Addr) (*sources, error) {
	s := &sources{prefixes: prefixes}
	for _, prefix := range prefixes {
		if !prefix.IsValid() || prefix.Addr().Is4() != target.Is4() {
			return nil, fmt.Errorf("loadgen: source %v is not of the address family of the "+
				"target %v", prefix, target)
		}
		s.next = append(s.next, prefix.Addr())
	}
	return s, nil
}

// take returns the next address, or the zero address if there are none to choose from.
func (s *sources) take() netip.Addr {
	if len(s.prefixes) == 0 {
		return netip.Addr{}
	}
	i := s.turn
	s.turn = (s.turn + 1) % len(s.prefixes)
	address := s.next[i]
	if following := address.Next(); s.prefixes[i].Contains(following) {
		s.next[i] = following
	} else {
		s.next[i] = s.prefixes[i].Masked().Addr()
	}
	return address
}
