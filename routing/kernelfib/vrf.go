package kernelfib

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
)

// VRF is how packets come to a table and its shadow.
type VRF struct {
	Table, Shadow uint32
	SID           netip.Addr // where strays arrive: what is in them is looked up in the shadow
	Interfaces    []string   // what comes in by these is looked up in the table first
}

// ruleBefore is the priority of rules: before those of VRF devices (1000) and of the main table.
const ruleBefore = 930

// Lead makes packets come to the tables of these VRFs, and to no others of earlier ones. Shadow
// SIDs come before rules, so that no packet goes astray that can't come back.
func (f *Forwarder) Lead(vrfs []VRF) error {
	sids := map[netip.Prefix]bool{}
	for _, v := range vrfs {
		if err := f.local(v); err != nil {
			return fmt.Errorf("make shadow SID %s: %w", v.SID, err)
		}
		sids[netip.PrefixFrom(v.SID, v.SID.BitLen())] = true
	}
	if err := f.dropSIDs(sids); err != nil {
		return fmt.Errorf("remove shadow SIDs: %w", err)
	}
	return f.rules(vrfs)
}

// local makes the route of a shadow SID: End.DT46 if a VRF device has the shadow as its table, else
// End.DT6.
func (f *Forwarder) local(v VRF) error {
	vrf, err := vrfDevice(v.Shadow)
	if err != nil {
		return err
	}
	id := f.free()
	b := f.socket.batch()
	err = b.add(func(bytes []byte, seq uint32) ([]byte, error) {
		return rtnetlink.AppendLocal(bytes, seq, unix.NLM_F_CREATE|unix.NLM_F_EXCL, id, v.Shadow,
			vrf != "", protocol), nil
	})
	if err == nil {
		r := rtnetlink.Route{
			Table: unix.RT_TABLE_MAIN, Prefix: netip.PrefixFrom(v.SID, v.SID.BitLen()),
			Protocol: protocol,
			Metric:   metricOf6, NextHopID: id,
		}
		err = b.message(rtnetlink.Message{Kind: rtnetlink.NewRoute, Route: r},
			unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	}
	if err == nil {
		err = b.flush()
	}
	for _, refused := range b.failed {
		if err = refused; vrf != "" {
			return fmt.Errorf("%w; End.DT46 with VRF device %s needs Linux 5.14 or newer and: "+
				"sysctl -w net.vrf.strict_mode=1", err, vrf)
		}
		return fmt.Errorf("%w; the loopback interface must be up, and the kernel have IPv6 "+
			"segment routing (CONFIG_IPV6_SEG6_LWTUNNEL)",
			err)
	}
	f.locals[id] = err == nil
	return err
}

// vrfDevice is the VRF device with this table, "" if there is none.
func vrfDevice(table uint32) (string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		if v, ok := l.(*netlink.Vrf); ok && v.Table == table {
			return v.Name, nil
		}
	}
	return "", nil
}

// dropSIDs removes the shadow SIDs that are not in keep.
func (f *Forwarder) dropSIDs(keep map[netip.Prefix]bool) error {
	there, err := f.Read(unix.RT_TABLE_MAIN)
	if err != nil {
		return err
	}
	b := f.socket.batch()
	for prefix := range there {
		if keep[prefix] {
			continue
		}
		r := rtnetlink.Route{Table: unix.RT_TABLE_MAIN, Prefix: prefix, Protocol: protocol,
			Metric: metricOf6}
		if err := b.message(rtnetlink.Message{Kind: rtnetlink.DelRoute, Route: r}, 0); err != nil {
			return err
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	for _, err := range b.failed {
		return err
	}
	return nil
}

// rules makes the rules those of these VRFs.
func (f *Forwarder) rules(vrfs []VRF) error {
	type key struct {
		family int
		iface  string
		table  uint32
	}
	wanted := map[key]bool{}
	families := []int{unix.AF_INET, unix.AF_INET6}
	for _, v := range vrfs {
		for _, iface := range v.Interfaces {
			for _, family := range families {
				wanted[key{family, iface, v.Table}] = true
			}
		}
	}
	var drop []netlink.Rule
	for _, family := range families {
		list, err := netlink.RuleListFiltered(family, &netlink.Rule{Priority: ruleBefore},
			netlink.RT_FILTER_PRIORITY)
		if err != nil {
			return fmt.Errorf("list routing rules: %w", err)
		}
		for _, r := range list {
			if k := (key{family, r.IifName, uint32(r.Table)}); wanted[k] {
				delete(wanted, k)
			} else if r.Protocol == protocol {
				r.Family = family
				drop = append(drop, r)
			}
		}
	}
	for k := range wanted {
		r := netlink.NewRule()
		r.Family, r.IifName, r.Table, r.Priority, r.Protocol = k.family, k.iface, int(k.table),
			ruleBefore, protocol
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add a routing rule for interface %s: %w", k.iface, err)
		}
	}
	for _, r := range drop {
		if err := netlink.RuleDel(&r); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove the routing rule of interface %s: %w", r.IifName, err)
		}
	}
	return nil
}

// Remove takes everything away that any forwarder wrote in this network namespace: first the rules,
// so that packets go the way that the other tables know.
func Remove() error {
	f, err := OpenForwarder()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Lead(nil); err != nil {
		return err
	}
	return f.Collect(nil) // the kernel removes routes with their next hops
}
