package linkstate

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/packet/srv6"
	"sextant/te/topology"
)

// OSPF6Database is what FRR's ospf6d prints of its database as JSON, by the type of its LSAs.
type OSPF6Database struct {
	Routers  []byte // "show ipv6 ospf6 database router detail json"
	Networks []byte // the same of network
	Prefixes []byte // the same of intra-prefix
	External []byte // the same of as-external
}

// ospf6Answer is such a print.
type ospf6Answer struct {
	Areas  []ospf6Scope `json:"areaScopedLinkStateDb"`
	Domain []ospf6Scope `json:"asScopedLinkStateDb"`
}

type ospf6Scope struct {
	LSAs []ospf6LSA `json:"lsa"`
}

// ospf6LSA is an LSA of any type (RFC 5340 section 4.4).
type ospf6LSA struct {
	Age       int             `json:"age"`
	ID        string          `json:"linkStateId"`
	Router    string          `json:"advertisingRouter"`
	Options   string          `json:"options"` // like "--|-|--|-|-|--|R|-|--|E|V6"
	Links     []ospf6Link     `json:"lsaDescription"`
	Attached  []string        `json:"attachedRouter"`
	Reference string          `json:"reference"`
	Prefix    json.RawMessage `json:"prefix"` // a list, or in an external LSA one
}

type ospf6Link struct {
	Type         string `json:"type"`
	Metric       uint32 `json:"metric"`
	Interface    string `json:"interfaceId"`
	FarInterface string `json:"neighborInterfaceId"`
	FarRouter    string `json:"neighborRouterId"`
}

const maxAge = 3600 // seconds; an LSA so old is on its way out

// OSPF6 makes a topology of OSPFv3's database. Routers are called by their ids.
func OSPF6(name string, db OSPF6Database, block srv6.Block) (*topology.Graph, []string, error) {
	d := domain{nodes: map[string]*node{}}
	prefixes := locators{block: block}
	for _, part := range []struct {
		text []byte
		take func(ospf6LSA) error
	}{{db.Routers, d.addOSPF6}, {db.Networks, d.addNetwork}, {db.Prefixes, prefixes.addIntra},
		{db.External, prefixes.addExternal}} {
		var answer ospf6Answer
		if err := json.Unmarshal(part.text, &answer); err != nil {
			return nil, nil, fmt.Errorf("read the database of ospf6d: %w", err)
		}
		for _, scope := range slices.Concat(answer.Areas, answer.Domain) {
			for _, lsa := range scope.LSAs {
				if lsa.Age >= maxAge || lsa.Router == "" {
					continue
				}
				if err := part.take(lsa); err != nil {
					return nil, nil, fmt.Errorf("read the database of ospf6d: an LSA of %s: %w",
						lsa.Router, err)
				}
			}
		}
	}
	return d.built(name, &prefixes)
}

// addOSPF6 takes the links of a router LSA.
func (d *domain) addOSPF6(lsa ospf6LSA) error {
	d.called(lsa.Router, false)
	options := strings.Split(lsa.Options, "|")
	if !slices.Contains(options, "R") || !slices.Contains(options, "V6") {
		d.nodes[lsa.Router].noTransit = true
	}
	for _, l := range lsa.Links {
		link := link{from: lsa.Router, to: l.FarRouter, near: l.Interface, far: l.FarInterface}
		link.Weight = max(1, l.Metric)
		switch l.Type {
		case "Point-To-Point":
			d.called(link.to, false)
		case "Transit-Network":
			link.to = networkID(l.FarInterface, l.FarRouter)
			d.called(link.to, true)
		default: // a virtual link is no link
			continue
		}
		if l.FarRouter != "" && link.from != link.to {
			d.links = append(d.links, link)
		}
	}
	return nil
}

// addNetwork takes the routers on a LAN.
func (d *domain) addNetwork(lsa ospf6LSA) error {
	network := networkID(lsa.ID, lsa.Router)
	d.called(network, true)
	for _, router := range lsa.Attached {
		d.links = append(d.links, link{from: network, to: router})
	}
	return nil
}

// networkID names a LAN by its designated router, and that one's interface there.
func networkID(iface, router string) string { return "network " + iface + " of " + router }

// called finds or makes a node that has no other name than its id.
func (d *domain) called(id string, pseudo bool) {
	if d.nodes[id] == nil && id != "" {
		d.nodes[id] = &node{name: id, pseudo: pseudo}
	}
}

func (l *locators) addIntra(lsa ospf6LSA) error {
	if lsa.Reference != "Router" {
		return nil
	}
	var list []struct {
		Prefix netip.Prefix `json:"prefix"`
	}
	if err := json.Unmarshal(lsa.Prefix, &list); err != nil {
		return err
	}
	for _, p := range list {
		l.add(lsa.Router, p.Prefix)
	}
	return nil
}

func (l *locators) addExternal(lsa ospf6LSA) error {
	var p netip.Prefix
	if err := json.Unmarshal(lsa.Prefix, &p); err != nil {
		return err
	}
	l.add(lsa.Router, p)
	return nil
}
