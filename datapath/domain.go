package datapath

import (
	"net/netip"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Domain is what programs know of the SR domain, and of this node in it. What a program has no use
// for may be left out.
type Domain struct {
	Secret         flow.Secret    // of the flow hash
	Block          srv6.Block     // of SIDs; the zero value: only this node's own are guarded
	Locators       []netip.Prefix // at most 4: where SIDs are besides the block
	Infrastructure []netip.Prefix // at most 4: sources of the domain
	Source         netip.Addr     // of the outer headers
}

func (d Domain) settings() domain {
	return domain{
		Secret: d.Secret, Block: prefixOf(d.Block.Prefix()), Locators: prefixesOf(d.Locators),
		Infrastructure: prefixesOf(d.Infrastructure), Source: addressOf(d.Source),
	}
}
