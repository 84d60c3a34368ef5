package config

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	"sextant/packet/lists"
)

// Strays is the role that takes strays away beside a router that owns the machine's SIDs:
// VRF-shadowing (Algorithm 1) for SIDs which the kernel decapsulates.
type Strays struct {
	Interfaces []XDPInterface `key:"interfaces" without:"side" item:"strays interface %s"`
	VRFs       []StrayVRF     `key:"vrfs" item:"strays of VRF %s"`
}

// StrayVRF is a VRF with servers: a VRF device, or a network namespace.
type StrayVRF struct {
	// name of the device; its SIDs are those of the kernel's End.DT4, End.DT6 and End.DT46 routes
	VRF string `key:"vrf" omit:"zero"`
	// path of a namespace, instead of a device
	Namespace string `key:"namespace" omit:"zero"`
	// whose packets the kernel leads into the namespace
	SIDs []netip.Prefix `key:"sids" omit:"zero" style:"flow"`
	// SIDs of the device at which strays stay, like a stray's last offer
	Except []netip.Prefix `key:"except" omit:"zero" style:"flow"`
	// the device on which strays are received
	Backup string `key:"backup"`
}

// Name names the VRF: its device or the path of its namespace.
func (v StrayVRF) Name() string { return v.VRF + v.Namespace }

// Limits of the data plane: STRAY_VRFS_MAX, and SIDs that leave room for those of devices.
const (
	maxStrayVRFs = 16
	maxStraySIDs = 128
)

func (s *Strays) faces() []Face { return facesOf(s.Interfaces, Face{Domain: true}) }

func (s *Strays) check(c *checker) {
	c.some("strays.interfaces", len(s.Interfaces), "there is no interface on which strays arrive",
		`add "- {name: eth0}"`)
	c.xdpInterfaces("strays", s.Interfaces)
	c.some("strays.vrfs", len(s.VRFs), "there is no VRF whose strays are taken away",
		`add "- {vrf: blue, backup: green}"`)
	c.count("strays.vrfs", "VRFs", len(s.VRFs), maxStrayVRFs)
	names, sids := unique[string]{}, unique[netip.Prefix]{}
	for i, v := range s.VRFs {
		where := fmt.Sprintf("strays.vrfs[%d]", i)
		c.strayVRF(where, v)
		names.once(c, where, v.Name(), deleteOne, "VRF %q is given twice")
		for j, sid := range v.SIDs {
			at := fmt.Sprintf("%s.sids[%d]", where, j)
			if sid.IsValid() && !sid.Addr().Is6() {
				c.invalid(at, fmt.Sprintf("%s is not of IPv6", sid),
					`write it like "fcbb:bb00:1:46::/64"`)
			}
			if owner, taken := sids.add(sid, v.Name()); taken {
				c.conflict(at, fmt.Sprintf("SID %s is one of VRF %s already", sid, owner),
					"delete one of the two")
			}
		}
	}
	c.count("strays.vrfs", "SIDs", len(sids), maxStraySIDs)
}

func (c *checker) strayVRF(where string, v StrayVRF) {
	c.interfaceName(join(where, "backup"), v.Backup)
	switch {
	case (v.VRF == "") == (v.Namespace == ""):
		c.invalid(where, "a VRF is one device or one network namespace",
			`write "vrf: blue" or "namespace: /run/netns/web"`)
	case v.VRF != "":
		c.interfaceName(join(where, "vrf"), v.VRF)
		if v.VRF == v.Backup {
			c.conflict(join(where, "backup"), "strays would stay in the VRF",
				"name another device, whose routes lead to the shadow",
				join(where, "vrf"))
		}
		if len(v.SIDs) > 0 {
			c.conflict(join(where, "sids"), "the SIDs of a VRF device are those of the kernel's "+
				"routes", "delete sids", join(where, "vrf"))
		}
	default:
		if !path.IsAbs(v.Namespace) {
			c.invalid(join(where, "namespace"), fmt.Sprintf("%q is not an absolute path",
				v.Namespace), "write it like /run/netns/web")
		}
		if len(v.Except) > 0 {
			c.conflict(join(where, "except"), "a namespace has no SIDs but those of its list",
				"delete except, and the SID from sids",
				join(where, "sids"))
		}
		c.some(where, len(v.SIDs), "the namespace has no SID",
			`add "sids:" and the SIDs whose packets the kernel leads into it`)
	}
}

func (v StrayVRF) summary() string {
	words := []string{"backup " + v.Backup}
	if len(v.SIDs) > 0 {
		words = append(words, "sids "+lists.Join(v.SIDs, " "))
	}
	if len(v.Except) > 0 {
		words = append(words, "except "+lists.Join(v.Except, " "))
	}
	return strings.Join(words, ", ")
}
