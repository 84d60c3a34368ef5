package config

import (
	"fmt"
	"math"
	"net/netip"

	"sextant/packet/srv6"
)

func (m *Merge) faces() []Face { return facesOf(m.Interfaces, Face{Domain: true}) }

func (m *Merge) check(c *checker) {
	c.some("merge.interfaces", len(m.Interfaces), "the egress has no interface", `add "- {name: eth0}"`)
	c.xdpInterfaces("merge", m.Interfaces)
	c.some("merge.sids", len(m.SIDs), "the egress has no SID",
		`add "- {prefix: "fcbb:bb00:2:f::/80", flows: [1, 2]}"`)
	c.count("merge.sids", "protected flows", len(m.SIDs), MaxMerges)
	marks, flows := map[netip.Prefix]int{}, unique[memberFlow]{}
	for i, s := range m.SIDs {
		where := fmt.Sprintf("merge.sids[%d]", i)
		c.mergePrefix(where, s)
		if mark, known := marks[s.Prefix]; known && mark != s.Mark {
			c.conflict(join(where, "mark"), fmt.Sprintf("%s has mark %d in one place and %d in "+
				"another", s.Prefix, mark, s.Mark),
				"a SID has one mark", join(where, "prefix"))
		} else {
			marks[s.Prefix] = s.Mark
		}
		if s.Ordered && s.Mark != 0 {
			c.conflict(join(where, "ordered"),
				"packets that are put in order have no mark any more",
				"delete mark, and lead them by the interface they come from (ip rule add iif "+
					"srv6order-in), or delete ordered", join(where,
					"mark"))
		}
		c.mergeFlows(where, s, flows)
		c.history(where, s)
	}
	c.count("merge.sids", "different SIDs", len(marks), MaxMergeSIDs)
}

// memberFlow is a path as the egress knows it.
type memberFlow struct {
	prefix netip.Prefix
	flow   int
}

func (c *checker) mergePrefix(where string, s MergeSID) {
	at, block := join(where, "prefix"), c.node.Domain.Block
	switch {
	case !s.Prefix.IsValid():
		c.invalid(at, "the SID has no prefix", `write it like "fcbb:bb00:2:f::/80"`)
	case s.Prefix.Overlaps(block.Prefix()) && s.Prefix.Bits() <= block.Prefix().Bits():
		c.invalid(at, fmt.Sprintf("prefix %s takes the whole SID block", s.Prefix),
			"write a longer prefix", "domain.block")
	case s.Form == NumberedInSID && s.Prefix.Bits() != redundancyBits:
		c.invalid(at, fmt.Sprintf("prefix %s leaves no argument for a flow and a number", s.Prefix),
			fmt.Sprintf("write %d bits: 64 of locator and 16 of function, or form: tlv",
				redundancyBits), join(where, "form"))
	}
	if c.node.Host == nil {
		return
	}
	for _, other := range c.node.Host.SIDs {
		if other.Prefix == s.Prefix {
			c.conflict(at, fmt.Sprintf("prefix %s is a SID of the host too", s.Prefix),
				"delete one of the two", "host.sids")
		}
	}
}

func (c *checker) mergeFlows(where string, s MergeSID, flows unique[memberFlow]) {
	at, most := join(where, "flows"), math.MaxUint32
	if s.Form == NumberedInSID {
		most = srv6.MaxRedundancySIDFlow
	}
	c.some(at, len(s.Flows), "no flow is given",
		`write the flow ids of the paths, which "sextant policy show" tells at the head-end`)
	c.count(at, "flows", len(s.Flows), MaxMergePaths)
	if s.Copies < 0 || s.Copies > len(s.Flows) {
		c.invalid(join(where, "copies"), fmt.Sprintf("%d copies of a packet on %d paths", s.Copies,
			len(s.Flows)),
			"write how many of the paths carry at a time, or nothing if all do", at)
	}
	for i, f := range s.Flows {
		item := fmt.Sprintf("%s[%d]", at, i)
		c.number(item, "flow", f, 1, most)
		if owner, taken := flows.add(memberFlow{s.Prefix, f}, s.String()); taken {
			c.conflict(item, fmt.Sprintf("flow %d of %s is given twice (%s)", f, s.Prefix, owner),
				"delete one of the two", join(where,
					"prefix"))
		}
	}
}

// history checks that copies can be told apart for as long as they may lag behind one another.
func (c *checker) history(where string, s MergeSID) {
	most := maxTLVHistory
	if s.Form == NumberedInSID {
		most = maxSIDHistory
	}
	at := join(where, "history")
	if s.History != 0 {
		c.number(at, "history", s.History, minHistory, most)
		if s.Rate != 0 || s.Skew != 0 {
			c.conflict(at, "history is given besides rate or skew, from which it would follow",
				"delete history, or both others",
				join(where, "rate"), join(where, "skew"))
		}
		return
	}
	if need := float64(s.Rate) * s.Skew.Seconds() * burstPercent / 100; need > float64(
		int(1)<<most) {
		c.invalid(join(where, "skew"),
			fmt.Sprintf("to tell copies apart at %d packets/s that come %v after others, %.0f "+
				"numbers would have to be remembered",
				s.Rate, s.Skew, need),
			fmt.Sprintf("form %s remembers 2^%d: choose paths of more similar delay", s.Form, most),
			join(where, "rate"), join(where, "form"))
	}
}
