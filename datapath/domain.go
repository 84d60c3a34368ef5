package datapath

import (
	"net/netip"
	"slices"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Domain is what programs know of the SR domain, and of this node in it. What a program has no use
// for may be left out.
type Domain struct {
	Secret         flow.Secret    // of the flow hash
	FlowHash       flow.Function  // how it is computed
	Block          srv6.Block     // of SIDs; the zero value: only this node's own are guarded
	Locators       []netip.Prefix // at most 4: where SIDs are besides the block
	Infrastructure []netip.Prefix // at most 4: sources of the domain
	Source         netip.Addr     // of the outer headers
}

func (d Domain) settings() domain {
	return domain{
		Secret: secretOf(d.Secret, d.FlowHash), Block: prefixOf(d.Block.Prefix()),
		Locators:       locators{prefixesOf(d.Locators)},
		Infrastructure: infrastructure{prefixesOf(d.Infrastructure)}, Source: addressOf(d.Source),
	}
}

func secretOf(s flow.Secret, f flow.Function) flowSecret {
	return flowSecret{Key: s, Function: uint8(f), NH: nhKey(s.NHKey())}
}

// common returns the bits in which the first 8 bytes of all addresses of the domain agree: an
// address that differs in one of them is no SID of the domain and none of its nodes.
func (d domain) common() (mask, bits [8]byte) {
	return common(slices.Concat([]prefix{d.Block}, d.Locators.Prefixes[:],
		d.Infrastructure.Prefixes[:]))
}

// common returns the bits in which the first 8 bytes of all addresses of the prefixes agree, as a
// mask and their values. Without a prefix the mask is 0, which every address agrees with.
func common(prefixes []prefix) (mask, bits [8]byte) {
	first := true
	for _, p := range prefixes {
		if p.Mask == (address{}) {
			continue // no prefix
		}
		for i := range mask {
			if first {
				mask[i], bits[i] = p.Mask[i], p.Address[i]
				continue
			}
			mask[i] &= p.Mask[i] &^ (bits[i] ^ p.Address[i])
			bits[i] &= mask[i]
		}
		first = false
	}
	return mask, bits
}
