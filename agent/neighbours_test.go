package agent_test

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/kernel"
	"sextant/kernel/kerneltest"
)

// A router takes another MAC and tells nobody, while nothing that the kernel sends itself makes it
// ask: the agent does, and the entry that programs send by becomes the new one.
func TestSilentChangeOfMAC(t *testing.T) {
	for _, on := range []string{"edge0", "host0", "vlan7"} {
		t.Run(on, func(t *testing.T) {
			m := newMachine(t)
			router, _ := kerneltest.Netns(t)
			parent := on
			if on == "vlan7" {
				parent = "edge0"
			}
			must(t, m.ns.Do(func() error { return moveLink(parent+"-peer", router) }))
			err := router.Do(func() error { return upLink(parent+"-peer", on, "fd00:5e:7::2/64") })
			if on == "vlan7" && errors.Is(err, unix.EOPNOTSUPP) {
				t.Skip("missing kernel feature: VLAN interfaces (CONFIG_VLAN_8021Q)")
			}
			must(t, err)
			must(t, m.ns.Do(func() error { return upLink(parent, on, "fd00:5e:7::1/64") }))
			a := m.start(nodeText)
			defer a.stop()
			old := m.neighbourMAC(on, nil)
			moved := net.HardwareAddr{2, 0, 0, 0, 7, 7}
			must(t, router.Do(func() error { return changeMAC(parent+"-peer", on, moved) }))
			began := time.Now()
			if now := m.neighbourMAC(on, old); !slices.Equal(now, moved) {
				t.Fatalf("the neighbour became %s, want %s", now, moved)
			}
			t.Logf("known again after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}

func moveLink(name string, to *kernel.Netns) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetNsFd(link, to.FD())
}

// upLink gives an address to an interface, which is a VLAN on its parent if it has another name.
func upLink(parent, on, text string) error {
	link, err := netlink.LinkByName(parent)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	if on == "vlan7" {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = on, link.Attrs().Index
		link = &netlink.Vlan{LinkAttrs: attrs, VlanId: 7, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}
		if err := errors.Join(netlink.LinkAdd(link), netlink.LinkSetUp(link)); err != nil {
			return err
		}
	}
	address, err := netlink.ParseAddr(text)
	if err != nil {
		return err
	}
	address.Flags = unix.IFA_F_NODAD
	return netlink.AddrAdd(link, address)
}

func changeMAC(parent, on string, to net.HardwareAddr) error {
	name := parent
	if on == "vlan7" {
		name = on
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := kernel.WriteSysctl("net.ipv6.conf."+name+".ndisc_notify", "0"); err != nil {
		return err
	}
	return netlink.LinkSetHardwareAddr(link, to)
}

// neighbourMAC waits until the machine knows the router by another MAC than one. Where it has no
// entry it asks, as a packet that programs hand to the kernel does; else it sends nothing.
func (m *machine) neighbourMAC(on string, other net.HardwareAddr) (mac net.HardwareAddr) {
	m.t.Helper()
	for mac == nil {
		must(m.t, m.ns.Do(func() error {
			link, err := netlink.LinkByName(on)
			if err != nil {
				return err
			}
			list, err := netlink.NeighList(link.Attrs().Index, unix.AF_INET6)
			if err != nil {
				return err
			}
			router := net.ParseIP("fd00:5e:7::2")
			for _, n := range list {
				if !n.IP.Equal(router) || n.State == netlink.NUD_FAILED {
					continue
				}
				if len(n.HardwareAddr) > 0 && !slices.Equal(n.HardwareAddr, other) {
					mac = n.HardwareAddr
				}
				return nil
			}
			c, err := net.Dial("udp", "[fd00:5e:7::2]:9")
			if err != nil {
				return err
			}
			_, _ = c.Write([]byte{0})
			return c.Close()
		}))
		select {
		case <-m.t.Context().Done():
			m.t.Fatal("the test ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return mac
}
