package doctor

import (
	"fmt"
	"math/bits"

	"sextant/config"
	"sextant/linux/facts"
)

// namedMost is how many next hops of a destination the programs hold.
const namedMost = 64

// selectorRadix finds destinations among whose next hops no selector can choose.
func selectorRadix(n *config.Node, f *facts.Facts, _ string) (list []Finding) {
	if n.CFLB == nil || f.Running == nil {
		return nil
	}
	for _, u := range f.Running.Unnameable {
		selector := n.CFLB.SelectorOf(u.Prefix.Addr())
		if selector == nil {
			continue
		}
		mend := fmt.Sprintf("set the radix to %d at all routers and sources of the network",
			1<<bits.Len(uint(u.NextHops-1)))
		if u.NextHops > namedMost {
			mend = fmt.Sprintf("lead to it by at most %d next hops", namedMost)
		}
		list = append(list, Finding{"cflb_radix", Risk, u.Prefix.String(),
			fmt.Sprintf("it has %d next hops, and selectors of radix %d name %d", u.NextHops,
				selector.Radix, min(selector.Radix, namedMost)),
			"sources can't choose among them: the kernel hashes its packets", mend})
	}
	return list
}

// selectorFollowers finds next routers that do not do as selectors ask.
func selectorFollowers(_ *config.Node, f *facts.Facts, _ string) (list []Finding) {
	for _, one := range f.Followers {
		if one.Follows {
			continue
		}
		list = append(list, Finding{"cflb_not_followed", Risk,
			one.Gateway.String() + " via " + one.Interface,
			"this router does not take the next hops that selectors ask for, to " +
				one.Prefix.String(),
			"it takes no part in controllable load balancing, or has another key, fields, radix, " +
				"length or cipher: packets that chose a path are hashed there",
			"give it the role cflb with the parameters and the key of this node, or correct " +
				"whichever is wrong; sextant path next-hops there says whether it takes part"})
	}
	return list
}

// pathAddresses finds addresses from which no connection can be opened.
func pathAddresses(n *config.Node, f *facts.Facts, _ string) (list []Finding) {
	if n.PathSource == nil || f.Local == nil {
		return nil
	}
	for _, address := range n.PathSource.Addresses {
		if local, asked := f.Local[address]; asked && !local {
			list = append(list, Finding{"path_address", Broken, address.String(),
				"this machine does not have this address of pathSource",
				"no socket can be bound to it: connections take whatever paths",
				"write the address from which connections are opened: ip route get DESTINATION " +
					"shows it as src"})
		}
	}
	return list
}
