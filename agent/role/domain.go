package role

import (
	"net/netip"

	"sextant/config"
	"sextant/datapath"
)

// DomainOf is what the programs of a role know of the SR domain.
func DomainOf(n *config.Node, source netip.Addr) datapath.Domain {
	return datapath.Domain{
		Secret: n.Secret, FlowHash: n.FlowHash, Block: n.Domain.Block, Locators: n.Domain.Locators,
		Infrastructure: n.Domain.Infrastructure, Source: source,
	}
}
