package config

import (
	"fmt"
	"strings"

	"sextant/packet/lists"
)

func (b BGP) summary() string { return fmt.Sprintf("asn %d, routerID %s", b.ASN, b.RouterID) }

func (n Neighbor) summary() string {
	words := []string{fmt.Sprintf("asn %d, port %d", n.ASN, n.Port)}
	if n.Name != "" {
		words = append(words, "name "+n.Name)
	}
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
	names := lists.Map(n.Families, func(f Family) string { return string(f) })
	words = append(words, fmt.Sprintf("holdTime %v", n.HoldTime), strings.Join(names, " "))
	return strings.Join(words, ", ")
}
