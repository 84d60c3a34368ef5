package config

import (
	"fmt"
	"slices"
	"strings"
)

// clone returns a deep copy, nil of nil.
func (b *BGP) clone() *BGP {
	if b == nil {
		return nil
	}
	c := *b
	c.Neighbors = slices.Clone(b.Neighbors)
	for i := range c.Neighbors {
		c.Neighbors[i].Families = slices.Clone(c.Neighbors[i].Families)
	}
	return &c
}

func (d *differ) bgp(a, b *BGP) {
	a, b = role(d, "bgp", a, b, (*BGP).settings, func(of *BGP) *BGP {
		alone := of.clone()
		alone.Neighbors = nil
		return alone
	})
	if a == nil {
		return
	}
	d.number("bgp", "asn", a.ASN, b.ASN)
	d.modify("bgp", "routerID", a.RouterID.String(), b.RouterID.String())
	d.modify("bgp", "listen", a.Listen.String(), b.Listen.String())
	d.modify("bgp", "routeTarget", a.RouteTarget, b.RouteTarget)
	d.modify("bgp", "routeDistinguisher", a.RouteDistinguisher, b.RouteDistinguisher)
	d.modify("bgp", "gracefulRestart", a.GracefulRestart.String(), b.GracefulRestart.String())
	d.modify("bgp", "onStop", string(a.OnStop), string(b.OnStop))
	d.modify("bgp", "announce", string(a.Announce), string(b.Announce))
	d.number("bgp", "weight", a.Weight, b.Weight)
	d.modify("bgp", "startup", a.Startup.String(), b.Startup.String())
	d.modify("bgp", "announceVIPs", string(a.AnnounceVIPs), string(b.AnnounceVIPs))
	named(d, a.Neighbors, b.Neighbors,
		func(n Neighbor) string { return n.Address.String() },
		func(n Neighbor) (string, string) { return "bgp neighbor " + n.Address.String(), n.settings() },
		func(title string, a, b Neighbor) { d.modify(title, "settings", a.settings(), b.settings()) })
}

func (b *BGP) settings() string { return fmt.Sprintf("asn %d, routerID %s", b.ASN, b.RouterID) }

func (n Neighbor) settings() string {
	words := []string{fmt.Sprintf("asn %d, port %d", n.ASN, n.Port)}
	if n.Local.IsValid() {
		words = append(words, "local "+n.Local.String())
	}
	if n.PasswordFile != "" {
		words = append(words, "passwordFile "+n.PasswordFile)
	}
	if n.Passive {
		words = append(words, "passive")
	}
	if n.Multihop != 0 {
		words = append(words, fmt.Sprintf("multihop %d", n.Multihop))
	}
	if n.BFD != (BFD{}) {
		words = append(words, fmt.Sprintf("bfd %v x %d", n.BFD.Interval, n.BFD.Multiplier))
	}
	names := each(n.Families, func(f Family) string { return string(f) })
	words = append(words, fmt.Sprintf("holdTime %v", n.HoldTime), strings.Join(names, " "))
	return strings.Join(words, ", ")
}

// documentBGP is the shape of bgp in the file.
type documentBGP struct {
	ASN                int                `yaml:"asn" json:"asn"`
	RouterID           string             `yaml:"routerID" json:"routerID"`
	Listen             string             `yaml:"listen" json:"listen"`
	RouteTarget        string             `yaml:"routeTarget" json:"routeTarget"`
	RouteDistinguisher string             `yaml:"routeDistinguisher" json:"routeDistinguisher"`
	GracefulRestart    string             `yaml:"gracefulRestart" json:"gracefulRestart"`
	OnStop             OnStop             `yaml:"onStop" json:"onStop"`
	Announce           Announce           `yaml:"announce" json:"announce"`
	Weight             int                `yaml:"weight" json:"weight"`
	Startup            string             `yaml:"startup" json:"startup"`
	AnnounceVIPs       AnnounceVIPs       `yaml:"announceVIPs" json:"announceVIPs"`
	Neighbors          []documentNeighbor `yaml:"neighbors" json:"neighbors"`
}

type documentNeighbor struct {
	Address      string       `yaml:"address" json:"address"`
	ASN          int          `yaml:"asn" json:"asn"`
	Port         int          `yaml:"port" json:"port"`
	Local        string       `yaml:"local,omitempty" json:"local,omitempty"`
	PasswordFile string       `yaml:"passwordFile,omitempty" json:"passwordFile,omitempty"`
	Passive      bool         `yaml:"passive,omitempty" json:"passive,omitempty"`
	Families     []Family     `yaml:"families,flow" json:"families"`
	HoldTime     string       `yaml:"holdTime" json:"holdTime"`
	Multihop     int          `yaml:"multihop,omitempty" json:"multihop,omitempty"`
	BFD          *documentBFD `yaml:"bfd,omitempty" json:"bfd,omitempty"`
}

type documentBFD struct {
	Interval   string `yaml:"interval" json:"interval"`
	Multiplier int    `yaml:"multiplier" json:"multiplier"`
}

func bgpDocument(b *BGP) *documentBGP {
	if b == nil {
		return nil
	}
	return &documentBGP{
		ASN: b.ASN, RouterID: b.RouterID.String(), Listen: b.Listen.String(), RouteTarget: b.RouteTarget,
		RouteDistinguisher: b.RouteDistinguisher, GracefulRestart: b.GracefulRestart.String(), OnStop: b.OnStop,
		Announce: b.Announce, Weight: b.Weight, Startup: b.Startup.String(), AnnounceVIPs: b.AnnounceVIPs,
		Neighbors: each(b.Neighbors, neighborDocument),
	}
}

func neighborDocument(n Neighbor) documentNeighbor {
	d := documentNeighbor{
		Address: n.Address.String(), ASN: n.ASN, Port: n.Port, Local: addressText(n.Local), PasswordFile: n.PasswordFile,
		Passive: n.Passive, Families: n.Families, HoldTime: n.HoldTime.String(), Multihop: n.Multihop,
	}
	if n.BFD != (BFD{}) {
		d.BFD = &documentBFD{n.BFD.Interval.String(), n.BFD.Multiplier}
	}
	return d
}
