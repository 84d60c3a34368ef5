package config

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// keysOfServices are the keys of a bgp section that are about services and their backends.
const keysOfServices = "routeTarget routeDistinguisher onStop announce weight startup " +
	"announceVIPs"

// ReadTopologySpeaker reads the bgp section of a daemon that learns topologies and nothing else,
// from a file of its own. Keys, bounds and faults are those of a node file's section, without what
// is about services; neighbors of which nothing else is said exchange link-state routes alone. The
// error is of type Errors.
func ReadTopologySpeaker(section ast.Node) (*BGP, error) {
	d := &decoder{name: "bgp", most: readBounds{maxBytes, maxValues},
		places: map[string]Place{"bgp": PlaceOf(first(section))}, anchors: map[string]ast.Node{}}
	fields, b := objectOf(reflect.TypeFor[BGP](), keysOfServices, ""), fresh[BGP]()
	value{d: d, path: "bgp", node: section}.object(fields, reflect.ValueOf(&b).Elem())
	b.OnStop, b.Announce = Withdraw, AnnounceNothing
	for i := range b.Neighbors {
		if _, given := d.places[fmt.Sprintf("bgp.neighbors[%d].families", i)]; !given {
			b.Neighbors[i].Families = []Family{LinkState}
		}
	}
	c := &checker{node: &Node{BGP: &b}}
	c.settings("bgp", fields, reflect.ValueOf(&b).Elem())
	b.check(c)
	c.some("bgp.neighbors", len(b.Neighbors), "the speaker has no neighbor",
		`add "- {address: 2001:db8::1, asn: 64512}"`)
	for _, p := range c.problems {
		d.judge(p)
	}
	if len(d.faults) > 0 {
		return nil, d.errors()
	}
	return &b, nil
}
